/**
 * One streamed answer in a translation: the upstream's events become parts, the parts become the client's chunks, and
 * usage is counted in between.
 */
import { Buffer } from 'node:buffer'
import type { Part } from '../../../schemas/chat/part.ts'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import { SaidParts } from '../answer/content.ts'
import { ReportedStream, type UsageReport } from '../answer/reported-usage.ts'
import { errorNames, isUnreadable, unreadableEvent } from '../answer/request-errors.ts'
import type { AnswerStream } from '../dialect.ts'
import { EventReader } from '../sse/event-reader.ts'

/** Reads one answer's events, in their order. */
export interface PartReader {
  /**
   * Passes the parts of one event to `emit`. Never throws: skips what it cannot read, or reports it as an `error`
   * part.
   */
  read(name: string, data: string, emit: (part: Part) => void): void
  /** The model has finished, or a part of its answer has: usage comes next, if nothing else does. */
  readonly isFinishing: boolean
  /** The last report of usage, with what earlier ones reported of the prompt; another object for each. Null before. */
  readonly report: UsageReport | null
  /** The usage of that report, as it came. */
  readonly usage: unknown
  /** The service tier in which the upstream served the call; empty without one. */
  readonly serviceTier: string
  /** Returns the usage with the tools that have run and are not reported yet; absent where each report has them. */
  withTools?(usage: TokenUsage | null): TokenUsage | null
  /** Ends an answer that is whole, when its bytes have ended; absent where the protocol has a last event. */
  end?(emit: (part: Part) => void): void
}

/** Prints parts as the client's protocol has them. */
export interface AnswerPrinter {
  print(part: Part): void
  /** Prints an error of the upstream, with which the answer ends. */
  error(payload: string): void
  /** Returns the bytes printed since the last call; null for none. */
  take(): Buffer | null
}

const OVERFLOW = unreadableEvent('An event of the upstream is too long to be read.')

export class TranslatedStream extends ReportedStream implements AnswerStream {
  readonly #events = new EventReader((name, data) => this.#event(name, data))
  readonly #reader: PartReader
  readonly #printer: AnswerPrinter
  /** The upstream has erred or is complete: nothing after that counts. */
  #isOver = false
  #lastReport: UsageReport | null = null
  readonly #said = new SaidParts()
  /** Only whole events are printed. */
  readonly isBetweenEvents = true
  hasBegun = false
  isComplete = false

  constructor(reader: PartReader, printer: AnswerPrinter) {
    super()
    this.#reader = reader
    this.#printer = printer
  }

  override get usage(): TokenUsage | null {
    const { usage } = this.reports
    return this.#reader.withTools?.(usage) ?? usage
  }

  override get serviceTier(): string {
    return this.#reader.serviceTier
  }

  get isFinished(): boolean {
    return this.isComplete
  }

  /** The end of the upstream's answer prints the last event of the client's. */
  get hasEnded(): boolean {
    return this.isComplete
  }

  get awaitsUsage(): boolean {
    return !this.#isOver && this.#reader.isFinishing && !this.isUsageWhole
  }

  override get isAnswer(): boolean {
    return this.#said.hasContent || this.reports.isOutputReported
  }

  push(piece: Buffer): Buffer | null {
    this.#events.push(piece)
    if (this.#events.hasOverflown && !this.#isOver) this.#take({ type: 'error', payload: OVERFLOW })
    return this.#printer.take()
  }

  end(): Buffer | null {
    this.#events.end()
    this.#reader.end?.(this.#take)
    return this.#printer.take()
  }

  #event(name: string, data: string): void {
    if (this.#isOver) return
    this.#reader.read(name, data, this.#take)
    const { report } = this.#reader
    if (report === null || report === this.#lastReport) return
    this.#lastReport = report
    this.reports.takeRead(this.#reader.usage, report, this.characters, this.#said.thoughtCharacters)
  }

  #handleError(payload: string): void {
    const event = Buffer.from(payload)
    this.err(event)
    // Sent where no other channel is left: the client would get a stream of nothing.
    if (this.laterError === null && !isUnreadable(errorNames(event))) this.#printer.error(payload)
  }

  readonly #take = (part: Part): void => {
    if (this.#isOver) return
    if (part.type === 'error') this.#handleError(part.payload)
    this.#said.add(part)
    this.characters = this.#said.characters
    // An event without any field begins nothing.
    this.hasBegun ||= part.type === 'start' && part.id !== ''
    if (part.type === 'start') this.model = part.model
    if (part.type === 'end') this.isComplete = true
    this.#isOver = part.type === 'end' || part.type === 'error'
    this.#printer.print(part)
  }
}
