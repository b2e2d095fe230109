/**
 * Reads usage out of a native generate-content answer while its bytes pass through untouched, in both framings.
 * See docs/translation.md, "The answer".
 */
import { Buffer } from 'node:buffer'
import { answerFields, isJsonObject, saysError } from '../answer/content.ts'
import { type AnswerFacts, PlaceScanner } from '../answer/place-scan.ts'
import { modelIn, ReportedStream } from '../answer/reported-usage.ts'
import type { AnswerStream, WholeAnswer } from '../dialect.ts'
import type { LooseObject } from '../loose.ts'
import { SsePayload } from '../sse/payload.ts'
import type { Framing } from './path.ts'
import { ANSWERS } from './places.ts'
import { isFiltered } from './reader.ts'
import { GenerateContentUsage } from './usage.ts'

const SPACE = 0x20
const CLOSE_BRACKET = 0x5d

/** Returns whether a piece of a list ends behind its bracket; `before` for white space. */
function closesList(piece: Buffer, before: boolean): boolean {
  let last = piece.length - 1
  while (last >= 0 && piece[last]! <= SPACE) last--
  return last < 0 ? before : piece[last] === CLOSE_BRACKET
}

export class GenerateContentMeter extends ReportedStream implements AnswerStream {
  readonly #places: (typeof ANSWERS)['ofOne']
  readonly #scanner: PlaceScanner
  readonly #payload: SsePayload | null
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
    this.#places = choices === 1 ? ANSWERS.ofOne : ANSWERS.ofSeveral
    this.#scanner = new PlaceScanner(this.#places.first, (facts) => this.#answer(facts))
    this.#payload = framing === 'sse' ? new SsePayload(this.#scanner) : null
  }

  override get serviceTier(): string {
    return this.#usage.serviceTier
  }

  override get isAnswer(): boolean {
    return super.isAnswer || this.#hasOtherContent
  }

  /** No chunk says that it is the last one: as events they may go on behind the finish reason, with usage or more text. */
  get isFinished(): boolean {
    return this.#payload === null ? this.hasEnded : this.isComplete
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
    return this.#payload === null ? this.#scanner.isOutside : this.#payload.isBetweenEvents
  }

  push(piece: Buffer): Buffer {
    if (this.#payload !== null) this.#payload.push(piece)
    else {
      this.#scanner.push(piece)
      this.#isListClosed = this.#scanner.isOutside && closesList(piece, this.#isListClosed)
    }
    return piece
  }

  end(): null {
    return null
  }

  #answer(facts: AnswerFacts): void {
    this.#scanner.root = this.#places.later
    if (facts.texts.model !== undefined) this.model = facts.texts.model
    if (facts.error !== null) this.err(Buffer.from(facts.error))
    const { finish = '' } = facts.texts
    // An answer removed by a filter is an answer, as in the translation.
    this.#hasOtherContent ||= facts.hasOtherContent || isFiltered(finish)
    this.characters += facts.characters
    this.#thoughtCharacters += facts.thoughtCharacters
    this.#finish(facts, finish !== '')
    this.#usage.grounded(facts, this.model)
    this.#usage.ran(facts.runs)
    const { characters } = this
    const thought = this.#thoughtCharacters
    const said = characters === 0 ? 'nothing' : characters === thought ? 'thought' : 'text'
    const usage = facts.usage && withTier(facts.usage, facts.texts)
    this.reports.takeRead(usage, this.#usage.report(usage, said), characters, thought)
  }

  /** A blocked prompt ends the answer, and so does the last of its candidates that finishes. */
  #finish({ hasFinish, candidates }: AnswerFacts, isFinished: boolean): void {
    if (candidates === null) {
      this.isComplete ||= hasFinish || isFinished
      return
    }
    for (const [index, finishes] of candidates)
      this.#candidates.set(index, finishes || this.#candidates.get(index) === true)
    this.isComplete = hasFinish || [...this.#candidates.values()].every(Boolean)
  }
}

/** Most reports have neither. */
const withTier = (usage: LooseObject, { trafficType, serviceTier }: AnswerFacts['texts']): LooseObject =>
  trafficType === undefined && serviceTier === undefined ? usage : { ...usage, trafficType, serviceTier }

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
      ...modelIn(model),
    },
    isAnswer: meter.isAnswer && !hasErred(meter, body) && isJsonObject(body),
  }
}
