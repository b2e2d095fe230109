/**
 * Reads usage out of a native messages stream while its bytes pass through untouched.
 * See docs/failure-modes.md, "Money", row 7 and "Streams", rows 30 and 31.
 */
import { Buffer } from 'node:buffer'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import {
  answerFields,
  countTextCharacters,
  findFailure,
  hasMessageContent,
  saysError,
} from '../answer/content.ts'
import { readFacts } from '../answer/place-read.ts'
import type { AnswerFacts } from '../answer/places.ts'
import { isOutputReported, meterWhole, ReportedStream, readAnswerModel } from '../answer/reported-usage.ts'
import type { AnswerStream, WholeAnswer } from '../dialect.ts'
import { isObject, type LooseObject, parseFields, toFields, toList, toText } from '../loose.ts'
import { eventData, SseFramer } from '../sse/framer.ts'
import { LongEvents } from '../sse/long-events.ts'
import { RepeatedEvent } from '../sse/repeated-event.ts'
import { EVENT, SPOKEN_FIELDS } from './places.ts'
import { MessagesUsage, REFUSAL, readBlock, readCategory, SPOKEN_TYPES } from './usage.ts'

/** An escape in JSON as the runtime prints it; each counts as one character. */
const ESCAPE = /\\(?:u[\da-f]{4}|.)/g
const NAMED_ERROR = /^event: ?error\r?$/m

/** Types of events that carry no text. */
const KNOWN_TYPES: ReadonlySet<string | undefined> = new Set([
  ...['message_start', 'message_delta', 'message_stop', 'content_block_stop', 'ping', 'error'],
])

export class MessagesMeter extends ReportedStream implements AnswerStream {
  // As in the meter of chat-completions: only the fields that most events touch are adjacent.
  #isBetweenEvents = true
  readonly #repeated = new RepeatedEvent()

  readonly #framer = new SseFramer(
    (bytes, start, end, isReadable) => {
      if (isReadable && !this.#isRepeated(bytes, start, end)) this.#event(bytes, start, end)
    },
    new LongEvents(EVENT, (facts) => this.#take(facts)),
  )
  readonly #usage = new MessagesUsage()
  /** `message_stop` has passed. */
  isComplete = false
  #hasOtherBlock = false
  /** A block or the whole message has ended and nothing followed: the stop reason comes with the usage. */
  #isBehindBlock = false
  hasBegun = false

  override get usage(): TokenUsage | null {
    return this.#usage.withTools(this.reports.usage)
  }

  override get serviceTier(): string {
    return this.#usage.serviceTier
  }

  get unreportedAdvice(): number {
    return this.#usage.unreportedAdvice
  }

  get isBetweenEvents(): boolean {
    return this.#framer.isBetweenEvents
  }

  get isFinished(): boolean {
    return this.isComplete
  }

  get hasEnded(): boolean {
    return this.isComplete
  }

  get awaitsUsage(): boolean {
    return this.#isBehindBlock && !this.isUsageWhole
  }

  /** The usage that a message starts with is a placeholder. An event too long to be kept is content. */
  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasOtherBlock || this.#framer.unread > 0
  }

  push(piece: Buffer): Buffer {
    if (this.#isBetweenEvents && this.#isRepeated(piece, 0, piece.length)) return piece
    this.#framer.push(piece)
    this.#isBetweenEvents = this.#framer.isBetweenEvents
    return piece
  }

  /** Ends the stream. Some upstreams leave out the last empty line: a whole payload is read. */
  end(): null {
    if (this.#framer.isSkipping) return null
    const tail = this.#framer.takeTail()
    const data = eventData(tail, 0, tail.length)
    if (data !== null && parseFields(data.toString('utf8')) !== null) this.#event(tail, 0, tail.length)
    return null
  }

  /** Returns true for an event that says the same as the one before but for its text. */
  #isRepeated(bytes: Buffer, start: number, end: number): boolean {
    const characters = this.#repeated.countRepeated(bytes, start, end)
    if (characters < 0) return false
    this.characters += characters
    return true
  }

  #event(bytes: Buffer, start: number, end: number): void {
    const data = eventData(bytes, start, end)
    if (data === null || data.length === 0) return
    const facts = readFacts(data, EVENT)
    const { type, spoken, error } = facts
    const isUnknown = !KNOWN_TYPES.has(type)
    const isNamedError = isUnknown && spoken === 0 && NAMED_ERROR.test(bytes.toString('latin1', start, end))
    this.#take(facts, data, isNamedError)
    if (isUnknown && spoken === 1 && error === undefined)
      this.#repeated.remember(bytes, start, end, data, facts, EVENT)
  }

  /**
   * Takes the facts of an event.
   * @param data its payload; null for one that was too long to be kept
   * @param isNamedError by its name, if nothing else tells what it is
   */
  #take(facts: AnswerFacts, data: Buffer | null = null, isNamedError = false): void {
    const { type, model = '', block, category = '' } = facts
    const failure = findFailure(facts)
    const kind = failure === null ? type : 'error'
    const error = data ?? (failure === null ? null : Buffer.from(failure))
    if (error !== null && (kind === 'error' || isNamedError)) this.err(error)
    if (block !== undefined) {
      const { blockName: name = '', blockContent: contentType = '' } = facts
      this.#hasOtherBlock ||= !SPOKEN_TYPES.includes(block)
      this.#usage.blockBegins({ type: block, name, contentType, category })
    }
    if (kind === 'content_block_stop') this.#usage.blockEnds()
    this.characters += facts.characters
    if (kind !== 'ping') this.#isBehindBlock = kind === 'content_block_stop' || kind === 'message_delta'
    if (kind === 'message_start') this.hasBegun = true
    if (kind === 'message_stop') this.isComplete = true
    if (model !== '') this.model = model
    const metrics = parseOptional(facts.metrics)
    if (metrics !== null) this.reports.takeRead(metrics, this.#usage.metrics(metrics), this.characters)
    if (facts.finish === REFUSAL) this.#usage.refuse(category)
    // A refusal may be free whether or not there is a report.
    const usage = parseOptional(facts.usage)
    if (usage === null && facts.finish !== REFUSAL) return
    if (kind === 'message_start') this.reports.takeRead(usage, this.#usage.begin(usage), this.characters)
    else if (kind === 'message_delta')
      this.reports.takeRead(usage, this.#usage.report(usage), this.characters)
  }
}

const parseOptional = (json: string | undefined): LooseObject | null =>
  json === undefined ? null : parseFields(json)

/** Returns the characters of output in one block of a whole message, weighed by script. */
function countSaid(block: LooseObject): number {
  const texts = SPOKEN_FIELDS.map((name) => countTextCharacters(toText(block[name])))
  const input = block.input === undefined ? '' : JSON.stringify(block.input).replaceAll(ESCAPE, ' ')
  return texts.reduce((sum, characters) => sum + characters, countTextCharacters(input))
}

/** Reads a whole message; returns its bytes unchanged. */
export function readWholeMessage(body: Buffer): WholeAnswer {
  const message = answerFields(body)
  const blocks = toList(message?.content).map(toFields)
  const characters = blocks.reduce((sum, block) => sum + countSaid(block), 0)
  const usage = isObject(message?.usage) ? message.usage : null
  const reader = new MessagesUsage()
  for (const block of blocks) {
    reader.blockBegins(readBlock(block))
    reader.blockEnds()
  }
  const isRefusal = message?.stop_reason === REFUSAL
  if (isRefusal) reader.refuse(readCategory(message.stop_details))
  // A refusal may be free whether or not there is a report.
  const report = usage === null && !isRefusal ? null : reader.report(usage)
  const metered = meterWhole(report, characters, { usage, serviceTier: reader.serviceTier })
  const isError = message === null || message.type === 'error' || saysError(message)
  return {
    body,
    metered: { ...metered, usage: reader.withTools(metered.usage), ...readAnswerModel(message?.model) },
    isAnswer: !isError && (isOutputReported(report) || hasMessageContent(message)),
  }
}
