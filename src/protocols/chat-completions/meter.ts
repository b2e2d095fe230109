/**
 * Reads usage out of a native chat-completions stream while its bytes pass through. It changes one thing: the usage
 * chunk, which the gateway requested, is withheld from a client that did not request it; from a chunk with other
 * content, only the usage.
 */
import { Buffer } from 'node:buffer'
import { scanJson } from '../../core/json/scanner/tape.ts'
import { applySplices, type FieldSpan, removal } from '../../core/json/splice.ts'
import { findFailure } from '../answer/content.ts'
import { readFacts } from '../answer/place-read.ts'
import type { AnswerFacts } from '../answer/places.ts'
import { ReportedStream, sumChoices, type UsageReport } from '../answer/reported-usage.ts'
import { isObject, type LooseObject, parseFields, parseValue, toFields, toList, toText } from '../loose.ts'
import { eventData, payloadStart, SseFramer } from '../sse/framer.ts'
import { LongEvents } from '../sse/long-events.ts'
import { RepeatedEvent } from '../sse/repeated-event.ts'
import { readUsage } from '../usage/chat-completions.ts'
import { CHUNK, LATER_CHUNK } from './places.ts'
import { saysSomethingAt } from './whole.ts'

const DONE = '[DONE]'
const NONE = Buffer.alloc(0)

const FILTERED = 'content_filter'

const isUsageOnly = (facts: AnswerFacts, failure: string | null): boolean =>
  facts.usage !== undefined && !facts.hasChoices && failure === null

/** Returns the failure that a chunk reports; some upstreams have a code and a text in place of an error. */
function readFailure(facts: AnswerFacts): string | null {
  const failure = findFailure(facts)
  const { code, message, usage, hasChoices } = facts
  if (failure !== null || hasChoices || usage !== undefined || code === undefined) return failure
  return message !== undefined && parseValue(code) ? `{"error":{"code":${code}}}` : null
}

function beginsUsageOnly(data: Buffer | null): boolean {
  if (data === null) return false
  const facts = readFacts(data, CHUNK)
  return isUsageOnly(facts, readFailure(facts))
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
  /** Every choice has finished, or one has and the usage of the call has arrived. */
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
      new LongEvents(CHUNK, (facts) => this.#take(facts, readFailure(facts), null)),
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

  /** Content or usage has arrived. An event too long to be kept is content. */
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
    if (tail.length === 0) return null
    const data = eventData(tail, 0, tail.length)
    const isWithheld = isWhole(data) ? this.#readEvent(tail, 0, tail.length) : beginsUsageOnly(data)
    if (!this.#withholdUsage) return null
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

  /** Returns true for an event that says the same as the one before but for its text. */
  #isRepeated(bytes: Buffer, start: number, end: number): boolean {
    const characters = this.#repeated.countRepeated(bytes, start, end)
    if (characters < 0) return false
    this.characters += characters
    return true
  }

  /** Reads the facts of an event. Returns true for a usage chunk without other content. */
  #readEvent(bytes: Buffer, start: number, end: number): boolean {
    const data = eventData(bytes, start, end)
    if (data === null || data.length === 0) return false
    if (data.length === DONE.length && data.toString('latin1') === DONE) {
      this.isDone = true
      return false
    }
    const isLater = this.model !== ''
    let facts = readFacts(data, isLater ? LATER_CHUNK : CHUNK)
    if (isLater && (facts.hasFinish || facts.usage !== undefined)) facts = readFacts(data, CHUNK)
    const failure = readFailure(facts)
    this.#take(facts, failure, data)
    const saysOneThing = facts.spoken === 1 && facts.usage === undefined && !facts.hasFinish
    if (saysOneThing && failure === null)
      this.#repeated.remember(bytes, start, end, data, facts, this.model === '' ? CHUNK : LATER_CHUNK)
    return isUsageOnly(facts, failure)
  }

  /** Takes the facts of an event; `data` is its payload, null for one that was too long to be kept. */
  #take(facts: AnswerFacts, failure: string | null, data: Buffer | null): void {
    const { model, serviceTier, finish } = facts
    if (failure !== null) this.err(data ?? Buffer.from(failure))
    if (this.model === '' && model !== undefined) this.model = model
    this.characters += facts.characters
    if (facts.hasFinish) this.#finish(data)
    this.hasBegun ||= facts.hasChoices
    this.#hasOtherContent ||= facts.hasOtherContent || finish === FILTERED
    // The tier of the first chunk, and that of the last ones: it can change until the end.
    const isTierKnown = this.reports.serviceTier !== '' && facts.usage === undefined && !facts.hasFinish
    if (serviceTier !== undefined && !isTierKnown) this.reports.serviceTier = serviceTier
    const reported = facts.usage ?? facts.innerUsage
    const usage = reported === undefined ? null : parseValue(reported)
    if (isObject(usage)) this.reports.takeRead(usage, this.#readReport(usage, data, facts), this.characters)
    if (isUsageOnly(facts, failure)) this.hasFinish ||= this.#finished !== null && this.#finished.size > 0
  }

  /** Returns the report in an event. Where several choices are made, the usage inside one is only of that one. */
  #readReport(usage: LooseObject, data: Buffer | null, facts: AnswerFacts): UsageReport | null {
    const ofChoices = this.#ofChoices
    if (ofChoices === null || data === null || facts.usage !== undefined)
      return readUsage(usage, this.#provider)
    let isOfChoices = false
    for (const choice of readChoices(data)) {
      const report = readUsage(choice.usage, this.#provider)
      if (report === null) continue
      ofChoices.set(choice.index ?? 0, report)
      isOfChoices = true
    }
    return isOfChoices ? sumChoices(ofChoices.values()) : readUsage(usage, this.#provider)
  }

  /** Notes the choices that an event finishes. Some upstreams make one, however many are requested. */
  #finish(data: Buffer | null): void {
    const finished = this.#finished
    // Which choice an event finishes that was too long to be kept is not known.
    if (data === null) finished?.add({})
    else if (finished !== null)
      for (const { index, finish_reason } of readChoices(data))
        if (toText(finish_reason) !== '') finished.add(index ?? 0)
    this.hasFinish ||= finished === null || finished.size >= this.#choices
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

const readChoices = (data: Buffer): LooseObject[] =>
  toList(parseFields(data.toString('utf8'))?.choices).map(toFields)

const isWhole = (data: Buffer | null): boolean => {
  const text = data?.toString('utf8') ?? ''
  return text === DONE || parseValue(text) !== undefined
}

const USAGE = 'usage'
/** Fields that every chunk has, and that mean nothing without choices. */
const ENVELOPE: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'system_fingerprint', 'service_tier', 'obfuscation'],
])

/**
 * Returns the event `bytes[start, end)`, which has usage and no choices, without its usage, the rest byte for byte;
 * null where nothing else remains. A payload of several lines becomes one line.
 */
export function withoutUsage(bytes: Buffer, start: number, end: number): Buffer | null {
  const event = Buffer.from(bytes.subarray(start, end))
  const data = eventData(event, 0, event.length)
  if (data === null) return null
  let rest = data
  // A duplicate field is removed twice.
  for (let usage = findUsage(rest); usage !== null; usage = findUsage(rest))
    rest = applySplices(rest, [removal(rest, usage)])
  if (rest === data) return null
  const at = payloadStart(data, event, 0, event.length)
  if (at < 0) return inOneLine(event, rest)
  return Buffer.concat([event.subarray(0, at), rest, event.subarray(at + data.length)])
}

/** Returns the place of usage in an event that says more; null where it has none, or says nothing else. */
const findUsage = (data: Buffer): FieldSpan | null =>
  scanJson(data, 2, null, (tape) => {
    let [usage, saysMore] = [0, false]
    const end = tape.nodeAfter(0)
    for (let name = 1; name < end; name = tape.nodeAfter(name + 1)) {
      const text = tape.readName(name)
      if (text === USAGE) usage = name + 1
      else saysMore ||= !ENVELOPE.has(text) && saysSomethingAt(tape, name + 1)
    }
    return saysMore && usage > 0 ? tape.readSpan(usage) : null
  })

function inOneLine(event: Buffer, data: Buffer): Buffer {
  const lines = event.toString('latin1').split(/\r\n?|\n/)
  const others = lines.filter((line) => line !== '' && !/^data(:|$)/.test(line))
  const payload = data.toString('latin1').replaceAll('\n', ' ')
  return Buffer.from([...others, `data: ${payload}`, '', ''].join('\n'), 'latin1')
}
