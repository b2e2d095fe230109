/**
 * Reads usage out of a native chat-completions stream while its bytes pass through. It changes one thing: the usage
 * chunk, which the gateway requested, is withheld from a client that did not request it; from a chunk with other
 * content, the usage alone.
 */
import { Buffer } from 'node:buffer'
import { type FieldSpan, removal, spliced } from '../../core/json/fields.ts'
import { FieldCursor } from '../answer/field-cursor.ts'
import type { AnswerFacts } from '../answer/place-scan.ts'
import { addedChoices, ReportedStream, type UsageReport } from '../answer/reported-usage.ts'
import { fieldsOf, type LooseObject, listOf, parsedFields, textOf } from '../loose.ts'
import { eventData, payloadStart, SseFramer } from '../sse/framer.ts'
import { LongEvents, usageOf } from '../sse/long-events.ts'
import { RepeatedEvent } from '../sse/repeated-event.ts'
import { readUsage } from '../usage/chat-completions.ts'
import { type ChunkFacts, newChunkFacts, saysSomething, scanChunk } from './scan.ts'
import { usageAt } from './whole.ts'

const DONE = '[DONE]'
const NONE = Buffer.alloc(0)

function isWhole(data: Buffer | null): boolean {
  if (data === null) return false
  const text = data.toString('utf8')
  if (text === DONE) return true
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const isUsageOnly = (facts: ChunkFacts): boolean =>
  facts.usageStart >= 0 && !facts.hasChoices && !facts.isError

function beginsUsageOnly(data: Buffer | null): boolean {
  const facts = newChunkFacts()
  if (data !== null) scanChunk(data, facts)
  return isUsageOnly(facts)
}

export class ChatCompletionsMeter extends ReportedStream {
  // With `characters`, which precedes them, the fields that a repeated event touches are adjacent: with many streams open
  // none of it is in the cache.
  /** All that came belongs to events that have ended. */
  #isBetweenEvents = true
  readonly #repeated = new RepeatedEvent()

  readonly #withholdUsage: boolean
  readonly #provider: string | undefined
  readonly #framer: SseFramer
  /** The output of the current piece. Ranges of the piece are views, parts of older pieces copies. */
  #out: Buffer[] = []
  #rangeStart = -1
  #rangeEnd = -1
  #piece: Buffer = NONE

  /** `[DONE]` has passed. */
  isDone = false
  /** Every choice has finished, or one has and the usage of the call has come. */
  hasFinish = false
  readonly #choices: number
  /** The choices that have finished; null where one is made. */
  readonly #finished: Set<unknown> | null
  /** Reports of choices about themselves, by index; null where one is made. */
  readonly #ofChoices: Map<unknown, UsageReport> | null
  #hasOtherContent = false
  hasBegun = false

  constructor(options: { withholdUsage: boolean; provider?: string | undefined; choices?: number }) {
    super()
    this.#withholdUsage = options.withholdUsage
    this.#choices = options.choices ?? 1
    this.#finished = this.#choices === 1 ? null : new Set()
    this.#ofChoices = this.#choices === 1 ? null : new Map()
    this.#provider = options.provider
    this.#framer = new SseFramer(
      (bytes, start, end, isReadable) => this.#event(bytes, start, end, isReadable),
      new LongEvents('chat-completions', (facts) => this.#longEvent(facts)),
    )
  }

  /** True between two events. Where usage is withheld, an event goes out when it has ended. */
  get isBetweenEvents(): boolean {
    return this.#withholdUsage ? !this.#framer.isSkipping : this.#framer.isBetweenEvents
  }

  /** True when the stream has reported its end. */
  get isComplete(): boolean {
    return this.isDone || this.hasFinish
  }

  get isFinished(): boolean {
    return this.isDone
  }

  get hasEnded(): boolean {
    return this.isDone
  }

  get awaitsUsage(): boolean {
    return this.hasFinish && !this.isDone && !this.isUsageWhole
  }

  /** Content or usage has come. An event too long to be kept is content. */
  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasOtherContent || this.#framer.unread > 0
  }

  /** Reads one piece and returns the bytes for the client, null for none yet. The result may be a view of `piece`. */
  push(piece: Buffer): Buffer | null {
    if (this.#isBetweenEvents && this.#isRepeated(piece, 0, piece.length)) return piece
    const out = this.#cut(piece)
    this.#isBetweenEvents = this.#framer.isBetweenEvents
    return out
  }

  #longEvent(facts: AnswerFacts): void {
    this.characters += facts.characters
    // Which choice it is was not read.
    if (facts.hasFinish) this.#finish({ choices: [{ index: {}, finish_reason: 'stop' }] })
    if (facts.error !== null) this.err(Buffer.from(facts.error))
    const usage = usageOf(facts)
    if (facts.texts.service_tier !== undefined) this.reports.serviceTier = facts.texts.service_tier
    this.reports.takeRead(usage, readUsage(usage, this.#provider), this.characters)
  }

  /** Reads the events that the piece has, or ends. */
  #cut(piece: Buffer): Buffer | null {
    if (!this.#withholdUsage) {
      this.#framer.push(piece)
      return piece
    }
    this.#piece = piece
    const wasSkipping = this.#framer.isSkipping
    const end = this.#framer.push(piece)
    if (this.#framer.isSkipping) {
      if (!wasSkipping) this.#emitCopy(this.#framer.takeTail())
      this.#emitRange(end, piece.length)
    }
    return this.#takeOut()
  }

  /**
   * Ends the stream: returns the bytes held of an unfinished event. Some upstreams leave out the last empty line: a
   * whole payload is read. The part of a usage chunk before a break stays withheld.
   */
  end(): Buffer | null {
    if (this.#framer.isSkipping) return null
    const tail = this.#framer.takeTail()
    const data = eventData(tail, 0, tail.length)
    const isWithheld = isWhole(data) ? this.#read(data) : beginsUsageOnly(data)
    if (!this.#withholdUsage || tail.length === 0) return null
    return isWithheld ? withoutUsage(tail, 0, tail.length) : tail
  }

  #event(bytes: Buffer, start: number, end: number, isReadable: boolean): void {
    const isUsageOnly =
      isReadable && !this.#isRepeated(bytes, start, end) && this.#readEvent(bytes, start, end)
    if (!this.#withholdUsage) return
    if (isUsageOnly) {
      const rest = withoutUsage(bytes, start, end)
      if (rest !== null) this.#emitCopy(rest)
    } else if (bytes === this.#piece) this.#emitRange(start, end)
    else this.#emitCopy(Buffer.from(bytes.subarray(start, end)))
  }

  /** Returns true for an event that differs from the one before in its text alone. */
  #isRepeated(bytes: Buffer, start: number, end: number): boolean {
    const characters = this.#repeated.charactersIn(bytes, start, end)
    if (characters < 0) return false
    this.characters += characters
    return true
  }

  #readEvent(bytes: Buffer, start: number, end: number): boolean {
    const data = eventData(bytes, start, end)
    const facts = newChunkFacts()
    const isUsageOnly = this.#read(data, facts)
    const saysOneThing = facts.spoken === 1 && facts.usageStart < 0 && !facts.hasFinish && !facts.isError
    const at = data !== null && saysOneThing ? payloadStart(data, bytes, start, end) : -1
    if (at >= 0) this.#repeated.remember(bytes, start, end, at + facts.spokenStart, at + facts.spokenEnd)
    return isUsageOnly
  }

  /** Reads the facts of an event. Returns true for a usage chunk without other content. */
  #read(data: Buffer | null, facts = newChunkFacts()): boolean {
    if (data === null || data.length === 0) return false
    if (data.length === DONE.length && data.toString('latin1') === DONE) {
      this.isDone = true
      return false
    }
    scanChunk(data, facts)
    if (facts.isError) this.err(data)
    if (this.model === '' && facts.modelStart >= 0)
      this.model = data.toString('utf8', facts.modelStart, facts.modelEnd)
    this.characters += facts.characters
    if (facts.hasFinish) this.#finish(this.#finished && parsedFields(data.toString('utf8')))
    this.hasBegun ||= facts.hasChoices
    this.#hasOtherContent ||= facts.hasOtherContent
    if (facts.tierStart >= 0) this.#takeTier(data, facts)
    const usage = facts.usageStart < 0 && facts.innerUsageStart < 0 ? null : usageAt(data, facts)
    if (usage !== null) this.reports.takeRead(usage, this.#reportOf(usage, data, facts), this.characters)
    if (!isUsageOnly(facts)) return false
    this.hasFinish ||= this.#finished !== null && this.#finished.size > 0
    return true
  }

  /** Returns the report in an event. Where several choices are made, the usage inside one is of that one alone. */
  #reportOf(usage: unknown, data: Buffer, facts: ChunkFacts): UsageReport | null {
    const ofChoices = this.#ofChoices
    if (ofChoices === null || facts.usageStart >= 0) return readUsage(usage, this.#provider)
    let isOfChoices = false
    for (const choice of listOf(parsedFields(data.toString('utf8'))?.choices).map(fieldsOf)) {
      const report = readUsage(choice.usage, this.#provider)
      if (report === null) continue
      ofChoices.set(choice.index ?? 0, report)
      isOfChoices = true
    }
    return isOfChoices ? addedChoices(ofChoices.values()) : readUsage(usage, this.#provider)
  }

  /** Notes the choices that an event finishes. Some upstreams make one, however many are requested. */
  #finish(event: LooseObject | null): void {
    const finished = this.#finished
    for (const { index, finish_reason } of listOf(event?.choices).map(fieldsOf))
      if (textOf(finish_reason) !== '') finished?.add(index ?? 0)
    this.hasFinish ||= finished === null || finished.size >= this.#choices
  }

  /** Takes the service tier of the first chunk, and that of the last ones: it can change until the end. */
  #takeTier(data: Buffer, facts: ChunkFacts): void {
    if (this.reports.serviceTier !== '' && facts.usageStart < 0 && !facts.hasFinish) return
    this.reports.serviceTier = data.toString('latin1', facts.tierStart, facts.tierEnd)
  }

  #emitRange(start: number, end: number): void {
    if (this.#rangeEnd === start) {
      this.#rangeEnd = end
      return
    }
    this.#closeRange()
    this.#rangeStart = start
    this.#rangeEnd = end
  }

  #emitCopy(bytes: Buffer): void {
    this.#closeRange()
    this.#out.push(bytes)
  }

  #closeRange(): void {
    const piece = this.#piece
    const start = this.#rangeStart
    const end = this.#rangeEnd
    if (end > start) this.#out.push(end - start === piece.length ? piece : piece.subarray(start, end))
    this.#rangeStart = -1
    this.#rangeEnd = -1
  }

  #takeOut(): Buffer | null {
    this.#closeRange()
    const out = this.#out
    if (out.length === 0) return null
    this.#out = []
    return out.length === 1 ? out[0]! : Buffer.concat(out)
  }
}

const USAGE = Buffer.from('usage')
/** Fields that every chunk has, and that mean nothing without choices. */
const ENVELOPE = [
  'id',
  'object',
  'created',
  'model',
  'choices',
  'system_fingerprint',
  'service_tier',
  'obfuscation',
].map((name) => Buffer.from(name))

const cursor = new FieldCursor()

/**
 * Returns the event `bytes[start, end)`, which has usage and no choices, without its usage, the rest byte for byte;
 * null where nothing else remains. A payload of several lines becomes one line.
 */
export function withoutUsage(bytes: Buffer, start: number, end: number): Buffer | null {
  const event = Buffer.from(bytes.subarray(start, end))
  const data = eventData(event, 0, event.length)
  if (data === null || !saysMore(data)) return null
  let rest = data
  // A duplicate field is removed twice.
  for (let usage = findUsage(rest); usage !== null; usage = findUsage(rest))
    rest = spliced(rest, [removal(rest, usage)])
  const at = payloadStart(data, event, 0, event.length)
  if (at < 0) return inOneLine(event, rest)
  return Buffer.concat([event.subarray(0, at), rest, event.subarray(at + data.length)])
}

function saysMore(data: Buffer): boolean {
  cursor.enter(data, data.indexOf('{'))
  while (cursor.next()) {
    const isKnown = cursor.is(USAGE) || ENVELOPE.some((name) => cursor.is(name))
    if (!isKnown && saysSomething(data, cursor.start)) return true
  }
  return false
}

function findUsage(data: Buffer): FieldSpan | null {
  cursor.enter(data, data.indexOf('{'))
  while (cursor.next())
    if (cursor.is(USAGE)) return { nameStart: cursor.nameStart, start: cursor.start, end: cursor.end }
  return null
}

function inOneLine(event: Buffer, data: Buffer): Buffer {
  const lines = event.toString('latin1').split(/\r\n?|\n/)
  const others = lines.filter((line) => line !== '' && !/^data(:|$)/.test(line))
  const payload = data.toString('latin1').replaceAll('\n', ' ')
  return Buffer.from([...others, `data: ${payload}`, '', ''].join('\n'), 'latin1')
}
