/**
 * One streamed answer on its way through a translation: the upstream's events become parts, the parts become the
 * client's chunks, and what is billed is counted in between.
 */
import { Buffer } from 'node:buffer'
import type { Part } from '../../schemas/part.ts'
import type { TokenUsage } from '../core/pricing.ts'
import type { ChatCompletionsPrinter } from './chat-completions-printer.ts'
import type { AnswerStream } from './dialect.ts'
import { EventReader } from './event-reader.ts'
import { ReportedUsage, type UsageReport } from './reported-usage.ts'

/** Reads one answer's events, in their order. */
export interface PartReader {
  /**
   * Gives the parts of one event to `emit`. Never throws: what it cannot understand it skips or reports as an `error`
   * part. Returns false for an event that only keeps the connection alive.
   */
  read(name: string, data: string, emit: (part: Part) => void): boolean
  /** The last report of usage, with what earlier ones told of the prompt; another object for each. Null before. */
  readonly report: UsageReport | null
}

/** Unicode characters. The halves of a pair may come in two pieces: it is the first that counts. */
export function charactersOf(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}

/** What of a part the model said. */
export function saidBy(part: Part): string {
  if (part.type === 'text' || part.type === 'reasoning') return part.text
  return part.type === 'tool_arguments' ? part.json : ''
}

const OVERFLOW = JSON.stringify({ error: { message: 'An event of the upstream is too long to be read.' } })

export class TranslatedStream implements AnswerStream {
  readonly #events = new EventReader((name, data) => this.#event(name, data))
  readonly #reader: PartReader
  readonly #printer: ChatCompletionsPrinter
  /** The upstream has erred or is complete: nothing after that counts. */
  #isOver = false
  readonly #reported = new ReportedUsage()
  #lastReport: UsageReport | null = null
  characters = 0
  #thoughtCharacters = 0
  events = 0
  isComplete = false
  firstError: Buffer | null = null

  constructor(reader: PartReader, printer: ChatCompletionsPrinter) {
    this.#reader = reader
    this.#printer = printer
  }

  get usage(): TokenUsage | null {
    return this.#reported.usage
  }

  get charactersSinceUsage(): number {
    return this.#reported.charactersBeyond(this.characters)
  }

  get isUsageWhole(): boolean {
    return this.#reported.isWhole(this.characters)
  }

  push(piece: Buffer): Buffer | null {
    this.#events.push(piece)
    if (this.#events.hasOverflown && !this.#isOver) {
      this.#take({ type: 'error', payload: OVERFLOW })
      this.events++
    }
    return this.#printer.take()
  }

  end(): Buffer | null {
    this.#events.end()
    return this.#printer.take()
  }

  #event(name: string, data: string): void {
    if (this.#isOver) return
    if (this.#reader.read(name, data, this.#take)) this.events++
    const { report } = this.#reader
    if (report === null || report === this.#lastReport) return
    this.#lastReport = report
    this.#reported.take(report, this.characters, this.#thoughtCharacters)
  }

  readonly #take = (part: Part): void => {
    if (this.#isOver) return
    if (part.type === 'error' && this.events === 0) this.firstError = Buffer.from(part.payload)
    const said = charactersOf(saidBy(part))
    this.characters += said
    if (part.type === 'reasoning') this.#thoughtCharacters += said
    if (part.type === 'end') this.isComplete = true
    this.#isOver = part.type === 'end' || part.type === 'error'
    this.#printer.print(part)
  }
}
