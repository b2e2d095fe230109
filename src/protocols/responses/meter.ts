/**
 * Reads usage out of a native responses stream while its bytes pass through untouched.
 * See docs/api-rules.md, "Responses"; docs/failure-modes.md, "Money", rows 5 and 8 and "Streams", rows 30 and 31.
 */
import { Buffer } from 'node:buffer'
import { NO_USAGE, type TokenUsage } from '../../core/pricing/usage.ts'
import { findFailure } from '../answer/content.ts'
import { readFacts } from '../answer/place-read.ts'
import type { AnswerFacts } from '../answer/places.ts'
import { ReportedStream } from '../answer/reported-usage.ts'
import type { AnswerStream } from '../dialect.ts'
import { parseFields } from '../loose.ts'
import { eventData, SseFramer } from '../sse/framer.ts'
import { LongEvents } from '../sse/long-events.ts'
import { RepeatedEvent } from '../sse/repeated-event.ts'
import { EVENT } from './places.ts'
import { type ItemFacts, ServerToolItems } from './tool-items.ts'
import { readResponsesUsage } from './usage.ts'

/** Of an answer: those that a later call can name. */
export const MAX_ITEMS = 1_000
const NAMED_ERROR = /^event: ?error\r?$/m

/** Sound is no text. */
const UNSPOKEN_DELTA = 'response.audio.delta'
const FAILED = 'response.failed'
const COMPLETED: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])
const ITEM_ADDED = 'response.output_item.added'
const ITEM_DONE = 'response.output_item.done'
/** Types that tell what an event is, besides those of deltas. */
const KNOWN_TYPES: ReadonlySet<string> = new Set([
  ...['error', 'response.created', FAILED, 'response.cancelled', ...COMPLETED, ITEM_ADDED, ITEM_DONE],
])

export class ResponsesMeter extends ReportedStream implements AnswerStream {
  // As in the meter of chat-completions: only the fields that most events touch are adjacent.
  #isBetweenEvents = true
  readonly #repeated = new RepeatedEvent()

  readonly #framer = new SseFramer(
    (bytes, start, end, isReadable) => {
      if (isReadable && !this.#isRepeated(bytes, start, end)) this.#event(bytes, start, end)
    },
    new LongEvents(EVENT, (facts) => this.#take(facts)),
  )
  /** Tools that the upstream has run itself, reported or not. */
  readonly #tools: ServerToolItems
  /** True when the upstream has ended the answer, also at a limit. */
  isComplete = false
  /** The last event says that the answer failed or was cancelled. */
  #hasFailed = false
  #hasItem = false
  responseId = ''
  readonly itemIds: string[] = []
  /** An item has ended and nothing followed: the last event ends the answer and reports the usage. */
  #isBehindItem = false
  hasBegun = false

  constructor(provider?: string) {
    super()
    this.#tools = new ServerToolItems(provider)
  }

  override get usage(): TokenUsage | null {
    const { usage } = this.reports
    // Of a stream that ends before its report, the tools have run all the same.
    return usage === null && this.#tools.calls === 0 ? null : this.#tools.addTo(usage ?? NO_USAGE)
  }

  get isBetweenEvents(): boolean {
    return this.#framer.isBetweenEvents
  }

  get isFinished(): boolean {
    return this.isComplete
  }

  get hasEnded(): boolean {
    return this.isComplete || this.#hasFailed
  }

  get awaitsUsage(): boolean {
    return this.#isBehindItem && !this.isUsageWhole
  }

  /** Content or usage has arrived; an item that begins is content. So is an event too long to be kept. */
  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasItem || this.#framer.unread > 0
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
    const { type = '' } = facts
    const isUnknown = !KNOWN_TYPES.has(type) && !isDelta(type)
    this.#take(facts, data, isUnknown && NAMED_ERROR.test(bytes.toString('latin1', start, end)))
    if (isDelta(type) && facts.spoken === 1 && facts.error === undefined)
      this.#repeated.remember(bytes, start, end, data, facts, EVENT)
  }

  /**
   * Takes the facts of an event.
   * @param data its payload; null for one that was too long to be kept
   * @param isNamedError by its name, if nothing else tells what it is
   */
  #take(facts: AnswerFacts, data: Buffer | null = null, isNamedError = false): void {
    const kind = findFailure(facts) === null ? (facts.type ?? '') : 'error'
    if (kind === 'error' || kind === FAILED || isNamedError) {
      // With the error where every other protocol has it.
      const error = kind === FAILED ? facts.responseError : facts.error
      const payload = error === undefined ? data : Buffer.from(`{"error":${error}}`)
      if (payload !== null) this.err(payload)
    }
    if (isDelta(kind)) this.characters += facts.characters
    this.#isBehindItem = kind === ITEM_DONE
    this.hasBegun ||= kind === 'response.created'
    this.#hasItem ||= kind === ITEM_ADDED || kind === ITEM_DONE
    if (kind === ITEM_DONE) this.#tools.add(readItem(facts))
    if (kind === ITEM_DONE && facts.itemId && this.itemIds.length < MAX_ITEMS) this.itemIds.push(facts.itemId)
    this.isComplete ||= COMPLETED.has(kind)
    this.#hasFailed ||= kind === FAILED || kind === 'response.cancelled'
    this.model = facts.model || this.model
    this.responseId = facts.id || this.responseId
    this.reports.serviceTier = facts.serviceTier || this.reports.serviceTier
    if (facts.usage === undefined) return
    const usage = parseFields(facts.usage)
    if (usage === null) return
    this.#tools.report(usage)
    this.reports.takeRead(usage, readResponsesUsage(usage), this.characters)
  }
}

const isDelta = (type: string): boolean => type.endsWith('.delta') && type !== UNSPOKEN_DELTA

/** Returns the item of an event that ends one. */
const readItem = ({ item = '', itemName = '', itemAction = '' }: AnswerFacts): ItemFacts => ({
  type: item,
  name: itemName,
  action: itemAction,
})
