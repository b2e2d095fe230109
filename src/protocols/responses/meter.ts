/**
 * Reads usage out of a native responses stream while its bytes pass through untouched.
 * See docs/api-rules.md, "Responses"; docs/failure-modes.md, "Money", rows 5 and 8 and "Streams", rows 30 and 31.
 */
import { Buffer } from 'node:buffer'
import { NO_USAGE, type TokenUsage } from '../../core/pricing/usage.ts'
import type { AnswerFacts } from '../answer/place-scan.ts'
import { ReportedStream } from '../answer/reported-usage.ts'
import type { AnswerStream } from '../dialect.ts'
import { parsedFields } from '../loose.ts'
import { eventData, payloadStart, SseFramer } from '../sse/framer.ts'
import { LongEvents, usageOf } from '../sse/long-events.ts'
import { NextDelta } from './next-delta.ts'
import { type EventFacts, itemOf, kindOf, scanEvent } from './scan.ts'
import { ServerToolItems } from './tool-items.ts'
import { readResponsesUsage } from './usage.ts'

const NAMED_ERROR = /^event: ?error\r?$/m

type Counted = Pick<EventFacts, 'kind' | 'characters' | 'usage' | 'item' | 'serviceTier'>

export class ResponsesMeter extends ReportedStream implements AnswerStream {
  readonly #framer = new SseFramer(
    (bytes, start, end, isReadable) => {
      if (isReadable && !this.#isNextDelta(bytes, start, end)) this.#event(bytes, start, end)
    },
    new LongEvents('responses', (facts) => this.#longEvent(facts)),
  )
  readonly #nextDelta = new NextDelta()
  /** Tools that the upstream has run itself, reported or not. */
  readonly #tools: ServerToolItems
  /** True when the upstream has ended the answer, also at a limit. */
  isComplete = false
  /** The last event says that the answer failed or was cancelled. */
  #hasFailed = false
  #hasItem = false
  responseId = ''
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

  /** Content or usage has come; an item that begins is content. So is an event too long to be kept. */
  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasItem || this.#framer.unread > 0
  }

  push(piece: Buffer): Buffer {
    this.#framer.push(piece)
    return piece
  }

  /** Ends the stream. Some upstreams leave out the last empty line: a whole payload is read. */
  end(): null {
    if (this.#framer.isSkipping) return null
    const tail = this.#framer.takeTail()
    const data = eventData(tail, 0, tail.length)
    if (data !== null && parsedFields(data.toString('utf8')) !== null) this.#event(tail, 0, tail.length)
    return null
  }

  #isNextDelta(bytes: Buffer, start: number, end: number): boolean {
    const characters = this.#nextDelta.charactersIn(bytes, start, end)
    if (characters < 0) return false
    this.characters += characters
    return true
  }

  #event(bytes: Buffer, start: number, end: number): void {
    const data = eventData(bytes, start, end)
    if (data === null || data.length === 0) return
    const facts = scanEvent(data)
    // With the error where every other protocol has it.
    if (isError(facts, bytes, start, end))
      this.err(facts.error === null ? data : Buffer.from(`{"error":${facts.error}}`))
    this.#take(facts)
    if (facts.model !== '') this.model = facts.model
    if (facts.id !== '') this.responseId = facts.id
    if (facts.kind === 'delta' && facts.spokenStart >= 0) this.#remember(facts, data, bytes, start, end)
  }

  #longEvent(facts: AnswerFacts): void {
    const { texts, error } = facts
    if (error !== null) this.err(Buffer.from(error))
    const kind = kindOf(texts.type ?? '')
    this.responseId = texts.response_id ?? this.responseId
    this.#take({
      kind,
      characters: kind === 'delta' ? facts.characters : 0,
      usage: usageOf(facts),
      item: kind === 'item_done' ? itemOf(texts) : null,
      serviceTier: texts.service_tier ?? '',
    })
  }

  #take({ kind, characters, usage, item, serviceTier }: Counted): void {
    this.characters += characters
    this.#isBehindItem = kind === 'item_done'
    if (kind === 'created') this.hasBegun = true
    if (kind === 'item_added' || kind === 'item_done') this.#hasItem = true
    if (item !== null) this.#tools.add(item)
    if (serviceTier !== '') this.reports.serviceTier = serviceTier
    if (kind === 'completed') this.isComplete = true
    if (kind === 'failed' || kind === 'cancelled') this.#hasFailed = true
    if (usage === null) return
    this.#tools.report(usage)
    this.reports.takeRead(usage, readResponsesUsage(usage), this.characters)
  }

  /** Remembers an event for comparison. */
  #remember(facts: EventFacts, data: Buffer, bytes: Buffer, start: number, end: number): void {
    const at = payloadStart(data, bytes, start, end)
    if (at < 0) return
    const { spokenStart, numberStart, numberEnd } = facts
    const isNumberBefore = numberStart >= 0 && numberStart < spokenStart
    this.#nextDelta.remember(bytes, {
      start,
      numberStart: isNumberBefore ? at + numberStart : -1,
      numberEnd: isNumberBefore ? at + numberEnd : -1,
      textStart: at + spokenStart,
    })
  }
}

const isError = ({ kind }: EventFacts, bytes: Buffer, start: number, end: number): boolean =>
  kind === 'error' ||
  kind === 'failed' ||
  (kind === 'other' && NAMED_ERROR.test(bytes.toString('latin1', start, end)))
