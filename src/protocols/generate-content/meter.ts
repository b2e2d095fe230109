/**
 * Reads usage out of a native generate-content answer while its bytes pass through untouched, in both framings.
 * See docs/translation.md, "The answer".
 */
import { Buffer } from 'node:buffer'
import { answerFields, findFailure, isJsonObject, saysError } from '../answer/content.ts'
import { readFacts, readWhole } from '../answer/place-read.ts'
import { PlaceScanner } from '../answer/place-scan.ts'
import type { AnswerFacts, Place } from '../answer/places.ts'
import { ReportedStream, readAnswerModel } from '../answer/reported-usage.ts'
import type { AnswerStream, WholeAnswer } from '../dialect.ts'
import { isObject, type LooseObject, parseValue } from '../loose.ts'
import { eventData, SseFramer } from '../sse/framer.ts'
import { LongEvents } from '../sse/long-events.ts'
import { ANSWERS } from './places.ts'
import { isFiltered } from './translation/reader.ts'
import { GenerateContentUsage } from './usage.ts'

const SPACE = 0x20
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
/** A bracket or a comma, and a line end. */
const MAX_BETWEEN_BYTES = 8

/** Returns whether a piece of a list ends behind its bracket; `before` for white space. */
function closesList(piece: Buffer, before: boolean): boolean {
  let last = piece.length - 1
  while (last >= 0 && piece[last]! <= SPACE) last--
  return last < 0 ? before : piece[last] === CLOSE_BRACKET
}

/** `sse` with `alt=sse` in the query; without it a stream is one JSON array that comes in pieces. */
export type Framing = 'sse' | 'array'

export class GenerateContentMeter extends ReportedStream implements AnswerStream {
  readonly #root: Place
  /** Reads a stream that is one list. */
  readonly #scanner: PlaceScanner
  readonly #framer: SseFramer | null
  readonly #usage = new GenerateContentUsage()
  #thoughtCharacters = 0
  isComplete = false
  /** Whether each candidate has finished, where there are several. */
  readonly #candidates = new Map<number, boolean>()
  #hasOtherContent = false
  /** Nothing follows in a stream that is one list. */
  #isListClosed = false

  constructor(framing: Framing, choices = 1) {
    super()
    this.#root = choices === 1 ? ANSWERS.ofOne : ANSWERS.ofSeveral
    const onAnswer = (facts: AnswerFacts) => this.#answer(facts)
    this.#scanner = new PlaceScanner(this.#root, onAnswer)
    this.#framer =
      framing === 'array'
        ? null
        : new SseFramer((bytes, start, end, isReadable) => {
            if (isReadable) this.#event(eventData(bytes, start, end))
          }, new LongEvents(this.#root, onAnswer))
  }

  override get serviceTier(): string {
    return this.#usage.serviceTier
  }

  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasOtherContent
  }

  /** No chunk says that it is the last one: as events they may go on behind the finish reason, with usage or more text. */
  get isFinished(): boolean {
    return this.#framer === null ? this.hasEnded : this.isComplete
  }

  get hasEnded(): boolean {
    return this.isComplete && this.#isListClosed
  }

  get awaitsUsage(): boolean {
    return this.isComplete && !this.isUsageWhole
  }

  /** No event of this protocol opens an answer without content. */
  get hasBegun(): boolean {
    return this.isAnswer
  }

  get isBetweenEvents(): boolean {
    return this.#framer === null ? this.#scanner.isOutside : this.#framer.isBetweenEvents
  }

  push(piece: Buffer): Buffer {
    if (this.#framer !== null) this.#framer.push(piece)
    else {
      this.#pushList(piece)
      this.#isListClosed = this.#scanner.isOutside && closesList(piece, this.#isListClosed)
    }
    return piece
  }

  /** Reads a piece of a list. Most are one element with what is between it and the one before. */
  #pushList(piece: Buffer): void {
    const from = this.#scanner.isOutside ? piece.indexOf(OPEN_BRACE) : -1
    const facts = from < 0 || from > MAX_BETWEEN_BYTES ? null : readWhole(piece.subarray(from), this.#root)
    if (facts === null) this.#scanner.push(piece)
    else this.#answer(facts)
  }

  /** Ends the stream. Some upstreams leave out the last empty line: a whole payload is read. */
  end(): null {
    if (this.#framer === null || this.#framer.isSkipping) return null
    const tail = this.#framer.takeTail()
    const data = eventData(tail, 0, tail.length)
    if (data !== null && parseValue(data.toString('utf8')) !== undefined) this.#event(data)
    return null
  }

  #event(data: Buffer | null): void {
    if (data !== null && data.length > 0) this.#answer(readFacts(data, this.#root))
  }

  #answer(facts: AnswerFacts): void {
    const { finish = '', model } = facts
    if (this.model === '' && model !== undefined) this.model = model
    const failure = findFailure(facts)
    if (failure !== null) this.err(Buffer.from(failure))
    // An answer removed by a filter is an answer, as in the translation.
    this.#hasOtherContent ||= facts.hasOtherContent || isFiltered(finish)
    this.characters += facts.characters
    this.#thoughtCharacters += facts.thoughtCharacters
    this.#finish(facts)
    this.#usage.grounded(facts, this.model)
    this.#usage.ran(facts.runs)
    const { characters } = this
    const thought = this.#thoughtCharacters
    const said = characters === 0 ? 'nothing' : characters === thought ? 'thought' : 'text'
    const usage = facts.usage === undefined ? null : parseUsage(facts.usage)
    this.reports.takeRead(usage, this.#usage.report(usage, said), characters, thought)
  }

  /** A blocked prompt ends the answer, and so does the last of its candidates that finishes. */
  #finish({ isBlocked, hasFinish, candidates }: AnswerFacts): void {
    if (candidates === null) {
      this.isComplete ||= isBlocked || hasFinish
      return
    }
    for (const [index, finishes] of candidates)
      this.#candidates.set(index, finishes || this.#candidates.get(index) === true)
    this.isComplete = isBlocked || [...this.#candidates.values()].every(Boolean)
  }
}

const parseUsage = (json: string): LooseObject | null => {
  const usage = parseValue(json)
  return isObject(usage) ? usage : null
}

const OUTCOME = '"base_resp"'

/**
 * Returns whether the answer is an error. The scanner finds the protocol's own error; any other is rare enough to be
 * parsed.
 */
const hasErred = ({ firstError, laterError }: AnswerStream, body: Buffer): boolean =>
  firstError !== null ||
  laterError !== null ||
  (body.includes(OUTCOME) && saysError(answerFields(body) ?? {}))

/** Reads one unstreamed answer. */
export function readWholeAnswer(body: Buffer): WholeAnswer {
  const meter = new GenerateContentMeter('array')
  meter.push(body)
  const { usage, characters, charactersSinceUsage, isUsageWhole, model, suspect, reported, serviceTier } =
    meter
  return {
    body,
    metered: {
      ...{ usage, characters, charactersSinceUsage, isUsageWhole, reported },
      ...(suspect !== '' && { suspect }),
      ...(serviceTier !== '' && { serviceTier }),
      ...readAnswerModel(model),
    },
    isAnswer: meter.isAnswer && !hasErred(meter, body) && isJsonObject(body),
  }
}
