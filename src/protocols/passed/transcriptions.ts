/** `POST /v1/audio/transcriptions`: reading a client's form, writing it for an upstream, and what its answer used. */
import { Buffer } from 'node:buffer'
import { Failure } from '../../../schemas/failure.ts'
import { FORM_BOUNDARY } from '../../channels/chat/passed.ts'
import { printText } from '../../core/call-log/detail-text.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { measureAudioSeconds } from '../../core/media/audio-length.ts'
import { NO_USAGE, type TokenUsage } from '../../core/pricing/usage.ts'
import { countTextCharacters } from '../answer/content.ts'
import { NOTHING_METERED } from '../answer/reported-usage.ts'
import type { AnswerStream, ChatCall, Metered, ProtocolAdapter, WholeAnswer } from '../dialect.ts'
import { parseFields, toFields, toText } from '../loose.ts'
import { ROUTING_FIELDS } from '../request/routing-fields.ts'
import { EventReader } from '../sse/event-reader.ts'
import { passedCall, readCount, readPassedAnswer } from './passed.ts'

/** The audio file of the form. */
export interface SoundFile {
  /** The client's name for it; the extension may tell the format. */
  readonly name: string
  readonly mediaType: string
  readonly bytes: Buffer
}

type FormFields = ReadonlyArray<readonly [name: string, value: string]>

interface TranscriptionSource {
  readonly fields: FormFields
  readonly file: SoundFile
}

/** 32 kbit/s, usual for speech: estimates the length of a file in an unknown format. */
const USUAL_BYTES_PER_SECOND = 4_000
/** No upstream accepts a lower rate: a longer reported duration is a fault. */
const LEAST_BYTES_PER_SECOND = 500

/** Fields that decide the call, each once. */
const DECIDING = ['model', 'stream', 'response_format']
const REFUSED: ReadonlySet<string> = new Set([...ROUTING_FIELDS, 'url', 'file_url', 'file_id'])

const refuse = (message: string): Failure => new Failure('invalid_request', message)

/** @throws Failure for a field that another reader could take for one that decides, or that names other work */
function assertFields(fields: FormFields): void {
  for (const [index, [name]] of fields.entries()) {
    const known = name.toLowerCase()
    if (DECIDING.includes(known) && (name !== known || fields.findIndex(([other]) => other === name) < index))
      throw refuse(`The form must have ${known} once, and under this name.`)
    if (REFUSED.has(known) || known === 'file')
      throw refuse(`The form has the field ${name}: send the audio as a file, and leave this field out.`)
  }
}

/** Returns the call. @throws Failure `invalid_request` */
export function readTranscription(fields: FormFields, file: SoundFile): ChatCall {
  assertFields(fields)
  const find = (name: string) => fields.find(([other]) => other === name)?.[1] ?? ''
  const model = find('model')
  if (model === '') throw refuse('The form has no model.')
  const { length } = file.bytes
  const measured = measureAudioSeconds(file.bytes)
  const count = measured === null ? Math.ceil(length / USUAL_BYTES_PER_SECOND) : Math.ceil(measured) + 1
  const source: TranscriptionSource = { fields, file }
  return {
    ...passedCall,
    ...{ model, conversationBytes: 0, promptBytes: 0 },
    stream: find('stream') === 'true',
    units: { type: 'audio', count, most: Math.max(count, Math.ceil(length / LEAST_BYTES_PER_SECOND)) },
    settings: printText('response_format', find('response_format')),
    source,
  }
}

/** Escapes quotes and line ends in a quoted name, as browsers do. */
const quote = (text: string): string =>
  text.replace(/["\r\n]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)

/** Returns the form with the upstream's name of the model. */
function writeForm({ fields, file }: TranscriptionSource, upstreamModel: string): Buffer {
  const head = (name: string) => `--${FORM_BOUNDARY}\r\ncontent-disposition: form-data; name="${quote(name)}"`
  const parts = fields.map(
    ([name, value]) => `${head(name)}\r\n\r\n${name === 'model' ? upstreamModel : value}\r\n`,
  )
  const type = file.mediaType.replace(/[\r\n]/g, '')
  const before = `${head('file')}; filename="${quote(file.name)}"\r\ncontent-type: ${type}\r\n\r\n`
  const after = Buffer.from(`\r\n--${FORM_BOUNDARY}--\r\n`)
  return Buffer.concat([Buffer.from(parts.join('') + before), file.bytes, after])
}

/** Returns the facts of an answer, or of the event that ends one. */
function meterTranscription(answer: Readonly<Record<'usage' | 'duration', unknown>>): Metered {
  const usage = toFields(answer.usage)
  const seconds = readCount(usage.seconds) ?? readCount(answer.duration)
  const tokens: TokenUsage = {
    ...NO_USAGE,
    prompt: Math.ceil(readCount(usage.input_tokens) ?? 0),
    output: Math.ceil(readCount(usage.output_tokens) ?? 0),
  }
  return {
    ...NOTHING_METERED,
    usage: tokens,
    isUsageWhole: seconds !== null,
    ...(seconds !== null && { units: seconds }),
    ...(answer.usage != null && { reported: answer.usage }),
  }
}

const PAGE = /^\s*<(!doctype|html)/i

function readWhole(body: Buffer): WholeAnswer {
  // Subtitles and plain text: they may be empty for sound without speech.
  if (scanFields(body).fields.size === 0) {
    const isAnswer = body.length > 0 && !PAGE.test(body.toString('latin1', 0, 64))
    return { body, metered: NOTHING_METERED, isAnswer }
  }
  const answer = readPassedAnswer(body)
  const isAnswer = answer !== null && typeof answer.read('text') === 'string'
  if (!isAnswer) return { body, metered: NOTHING_METERED, isAnswer }
  const facts = { usage: answer.read('usage'), duration: answer.read('duration') }
  return { body, metered: meterTranscription(facts), isAnswer }
}

const DELTA = 'transcript.text.delta'
const DONE = 'transcript.text.done'

/** A transcription that comes in pieces of text. */
class TranscriptionStream implements AnswerStream {
  readonly #reader = new EventReader((_name, data) => this.#take(data))
  usage: TokenUsage | null = null
  units?: number
  reported: unknown
  characters = 0
  isUsageWhole = false
  isComplete = false
  hasBegun = false
  isBetweenEvents = true
  readonly awaitsUsage = false
  firstError: Buffer | null = null
  laterError: Buffer | null = null

  get charactersSinceUsage(): number {
    return this.isUsageWhole ? 0 : this.characters
  }

  get isFinished(): boolean {
    return this.isComplete
  }

  get hasEnded(): boolean {
    return this.isComplete
  }

  get isAnswer(): boolean {
    return this.characters > 0 || this.isComplete
  }

  push(piece: Buffer): Buffer {
    this.#reader.push(piece)
    this.isBetweenEvents = /\n\r?\n$/.test(piece.toString('latin1', piece.length - 3))
    return piece
  }

  end(): null {
    this.#reader.end()
    return null
  }

  #take(data: string): void {
    const event = parseFields(data)
    if (event === null) return
    const type = toText(event.type)
    this.hasBegun = true
    if (type === 'error' || event.error != null) {
      if (this.isAnswer) this.laterError ??= Buffer.from(data)
      else this.firstError ??= Buffer.from(data)
    }
    if (type === DELTA) this.characters += countTextCharacters(toText(event.delta))
    if (type !== DONE) return
    const { usage, units, isUsageWhole } = meterTranscription({
      usage: event.usage,
      duration: event.duration,
    })
    this.usage = usage
    this.reported = event.usage
    this.isUsageWhole = isUsageWhole
    if (units !== undefined) this.units = units
    this.isComplete = true
  }
}

/** Prints a whole answer as the events of a stream, for an upstream that did not stream. */
function writeAsStream(body: Buffer): Buffer {
  const { text, usage } = parseFields(body.toString('utf8')) ?? {}
  const events = [
    { type: DELTA, delta: text },
    { type: DONE, text, ...(usage !== undefined && { usage }) },
  ]
  return Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
}

export const transcriptionsAdapter: ProtocolAdapter = {
  from: 'audio_transcriptions',
  to: 'audio_transcriptions',
  urlsToFetch: () => [],
  encodeRequest: (call, { upstreamModel }) => ({
    body: writeForm(call.source as TranscriptionSource, upstreamModel),
    dropped: [],
  }),
  streamContentType: () => null,
  keepAlive: () => null,
  openStream: () => new TranscriptionStream(),
  readWhole: (_call, body) => readWhole(body),
  wholeAsStream: (_call, body) => writeAsStream(body),
}
