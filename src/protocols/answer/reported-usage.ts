/**
 * Usage of one answer, as its upstream reports it: once, or in several cumulative reports. A report is a lower bound:
 * no later one reduces it, a missing count is no zero, and output after it is estimated.
 */
import { NO_USAGE, type TokenUsage } from '../../core/pricing/pricing.ts'
import type { Metered } from '../dialect.ts'

/** The content of one report. */
export interface UsageReport extends Omit<TokenUsage, 'prompt' | 'output'> {
  /** Null where the report leaves it out. */
  readonly prompt: number | null
  readonly output: number | null
  /** The output is that of the reasoning alone: there was text as well, and it is not counted. */
  readonly isThoughtAlone?: boolean
}

/** Returns a report with zeros for missing counts. */
export const countsOf = ({ isThoughtAlone: _, prompt, output, ...rest }: UsageReport): TokenUsage => ({
  ...rest,
  prompt: prompt ?? 0,
  output: output ?? 0,
})

export const isOutputReported = (report: UsageReport | null): boolean =>
  report !== null && report.output !== null

export class ReportedUsage {
  /** The counts reported so far, zeros for missing ones; null before any report. */
  usage: TokenUsage | null = null
  #isPromptReported = false
  /** The characters of output at the last report of it; -1 before. */
  #charactersAtOutput = -1
  /** The same when the output last rose: the characters that the reports account for. */
  #charactersCovered = 0

  /**
   * Takes a report.
   * @param characters output so far, including that of the same event
   * @param thoughtCharacters the part of them that is reasoning
   */
  take(report: UsageReport, characters: number, thoughtCharacters = 0): void {
    if (report.prompt === null && report.output === null && report.serverToolCalls === 0) return
    const before = this.usage ?? NO_USAGE
    const isPrompt = report.prompt !== null && report.prompt >= before.prompt
    const isMore = report.output !== null && report.output > before.output
    const output = isMore ? report.output : before.output
    this.#isPromptReported ||= report.prompt !== null
    const covered = report.isThoughtAlone === true ? thoughtCharacters : characters
    if (report.output !== null) this.#charactersAtOutput = covered
    // A count that does not rise during output does not include that output.
    if (isMore) this.#charactersCovered = covered
    this.usage = {
      prompt: isPrompt ? report.prompt : before.prompt,
      cached: isPrompt ? report.cached : before.cached,
      cacheWrite: isPrompt ? report.cacheWrite : before.cacheWrite,
      output,
      reasoning: Math.min(output, Math.max(report.reasoning, before.reasoning)),
      serverToolCalls: Math.max(report.serverToolCalls, before.serverToolCalls),
    }
  }

  /** A report had the output; a report of the prompt alone may come before there is any answer. */
  get isOutputReported(): boolean {
    return this.#charactersAtOutput >= 0
  }

  /** Returns the part of `characters` that no report covers. */
  charactersBeyond(characters: number): number {
    return characters - this.#charactersCovered
  }

  /** Returns true when prompt and output have been reported, the output with or after the last of the `characters`. */
  isWhole(characters: number): boolean {
    return this.#isPromptReported && this.#charactersAtOutput === characters
  }
}

/** Returns the model that a whole answer names; nothing without one. */
export const modelIn = (model: unknown): Pick<Metered, 'model'> =>
  typeof model === 'string' && model !== '' ? { model } : {}

/** Meters a whole answer: its report is the only one. */
export function meteredWhole(report: UsageReport | null, characters: number, thoughtCharacters = 0): Metered {
  const reported = new ReportedUsage()
  if (report !== null) reported.take(report, characters, thoughtCharacters)
  return {
    usage: reported.usage,
    characters,
    charactersSinceUsage: reported.charactersBeyond(characters),
    isUsageWhole: reported.isWhole(characters),
  }
}
