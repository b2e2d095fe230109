/**
 * Usage of one answer, as its upstream reports it: once, or in several cumulative reports. A report is a lower bound:
 * no later one reduces it, a missing count is no zero, and output after it is estimated.
 */

import { Buffer } from 'node:buffer'
import { largerExtra, NO_USAGE, type TokenUsage } from '../../core/pricing/usage.ts'
import type { Metered } from '../dialect.ts'
import { findFault } from '../usage/faults.ts'

export const NOTHING_METERED: Metered = {
  usage: null,
  characters: 0,
  charactersSinceUsage: 0,
  isUsageWhole: false,
}

/** The content of one report. */
export interface UsageReport extends Omit<TokenUsage, 'prompt' | 'output'> {
  /** Null where the report leaves it out. */
  readonly prompt: number | null
  readonly output: number | null
  /** The output counts only the reasoning, although there was text as well. */
  readonly isThoughtAlone?: boolean
  /** The counts are those of the whole call, and earlier ones were not. */
  readonly replacesEarlier?: boolean
  /** A count that no call can have, or counts that contradict each other: `cached 9 > prompt 8`. Absent where none do. */
  readonly contradiction?: string | undefined
}

/** Returns a report with zeros for missing counts. */
export function toCounts(report: UsageReport): TokenUsage {
  const { prompt, cached, cacheWrite, output, reasoning, serverToolCalls, extra, byModel } = report
  const counts = {
    prompt: prompt ?? 0,
    cached,
    cacheWrite,
    output: output ?? 0,
    reasoning,
    serverToolCalls,
  }
  if (extra === undefined && byModel === undefined) return counts
  return { ...counts, ...(extra !== undefined && { extra }), ...(byModel !== undefined && { byModel }) }
}

export const isOutputReported = (report: UsageReport | null): boolean =>
  report !== null && report.output !== null

const addReports = (one: UsageReport, other: UsageReport): UsageReport => ({
  ...other,
  prompt: one.prompt === null || other.prompt === null ? other.prompt : Math.max(one.prompt, other.prompt),
  cached: Math.max(one.cached, other.cached),
  cacheWrite: Math.max(one.cacheWrite, other.cacheWrite),
  output: one.output === null || other.output === null ? other.output : one.output + other.output,
  reasoning: one.reasoning + other.reasoning,
  contradiction: one.contradiction ?? other.contradiction,
})

/** Returns the report of a call whose choices report themselves, at least one: they share their prompt. */
export const sumChoices = (reports: Iterable<UsageReport>): UsageReport => [...reports].reduce(addReports)

const SUSPECT_MAX_CHARS = 200

/** Returns the fault of a later count that is lower; some upstreams report 0 for what they reported before. */
const fall = (name: string, before: number, now: number | null): string =>
  now !== null && now > 0 && now < before ? `${name} ${now} < ${before} before` : ''

export class ReportedUsage {
  /** The counts reported so far, zeros for missing ones; null before any report. */
  usage: TokenUsage | null = null
  #isPromptReported = false
  /** The characters of output at the last report of it; -1 before. */
  #charactersAtOutput = -1
  /** The same when the output last rose: the characters that the reports account for. */
  #charactersCovered = 0
  /** Contradictions in the reports, separated by commas; empty without any. */
  suspect = ''
  /** The last usage object, as it came. */
  reported: unknown
  /** The service tier in which the upstream served the call, in its own word; empty without one. */
  serviceTier = ''

  /**
   * Takes the usage object of an event, and what its reader made of it.
   * @param characters output so far, including that of the same event
   * @param thoughtCharacters the part of them that is reasoning
   */
  takeRead(usage: unknown, report: UsageReport | null, characters: number, thoughtCharacters = 0): void {
    if (usage != null) this.reported = usage
    if (report === null) this.#distrust(findFault(usage))
    else this.take(report, characters, thoughtCharacters)
  }

  #distrust(fault: string): void {
    if (fault === '' || this.suspect.includes(fault)) return
    this.suspect = this.suspect === '' ? fault : `${this.suspect}, ${fault}`.slice(0, SUSPECT_MAX_CHARS)
  }

  /**
   * Takes a report.
   * @param characters output so far, including that of the same event
   * @param thoughtCharacters the part of them that is reasoning
   */
  take(report: UsageReport, characters: number, thoughtCharacters = 0): void {
    if (report.contradiction !== undefined) this.#distrust(report.contradiction)
    if (report.prompt === null && report.output === null && report.serverToolCalls === 0) return
    const before = report.replacesEarlier === true ? NO_USAGE : (this.usage ?? NO_USAGE)
    this.#distrust(fall('prompt', before.prompt, report.prompt))
    this.#distrust(fall('output', before.output, report.output))
    const isPrompt = report.prompt !== null && report.prompt >= before.prompt
    const isMore = report.output !== null && report.output > before.output
    const output = isMore ? report.output : before.output
    this.#isPromptReported ||= report.prompt !== null
    const covered = report.isThoughtAlone === true ? thoughtCharacters : characters
    if (report.output !== null) this.#charactersAtOutput = covered
    // A count that does not rise during output does not include that output.
    if (isMore) this.#charactersCovered = covered
    const extra =
      report.extra === undefined && before.extra === undefined
        ? undefined
        : largerExtra(before.extra, report.extra)
    const prompt = isPrompt ? report.prompt : before.prompt
    // A report may leave out what an earlier one had of the cache.
    const cached = isPrompt ? Math.max(report.cached, before.cached) : before.cached
    const cacheWrite = isPrompt ? Math.max(report.cacheWrite, before.cacheWrite) : before.cacheWrite
    this.usage = {
      prompt,
      cached,
      cacheWrite: Math.min(cacheWrite, Math.max(0, prompt - cached)),
      output,
      reasoning: Math.min(output, Math.max(report.reasoning, before.reasoning)),
      serverToolCalls: Math.max(report.serverToolCalls, before.serverToolCalls),
      ...(extra !== undefined && { extra }),
      ...(report.byModel !== undefined && { byModel: report.byModel }),
    }
  }

  /** A report had the output; a report of only the prompt may come before there is any answer. */
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

/** Facts of a whole answer besides its report and its length. */
interface WholeFacts {
  /** The usage object, as it came. */
  readonly usage?: unknown
  readonly serviceTier?: string
  /** The part of the characters that is reasoning. */
  readonly thoughtCharacters?: number
}

/** Returns the model that a whole answer names; nothing without one. */
export const readAnswerModel = (model: unknown): Pick<Metered, 'model'> =>
  typeof model === 'string' && model !== '' ? { model } : {}

/** Meters a whole answer: its report is the only one. */
export function meterWhole(
  report: UsageReport | null,
  characters: number,
  { usage, serviceTier = '', thoughtCharacters = 0 }: WholeFacts = {},
): Metered {
  const reported = new ReportedUsage()
  reported.takeRead(usage, report, characters, thoughtCharacters)
  return {
    usage: reported.usage,
    reported: usage,
    ...(reported.suspect !== '' && { suspect: reported.suspect }),
    ...(serviceTier !== '' && { serviceTier }),
    characters,
    charactersSinceUsage: reported.charactersBeyond(characters),
    isUsageWhole: reported.isWhole(characters),
  }
}

/** The base of meters: its members are those of `AnswerStream`. */
export class ReportedStream {
  protected readonly reports = new ReportedUsage()
  firstError: Buffer | null = null
  laterError: Buffer | null = null
  model = ''
  // Last: the fields of a meter that each chunk touches follow it.
  characters = 0

  get usage(): TokenUsage | null {
    return this.reports.usage
  }

  get suspect(): string {
    return this.reports.suspect
  }

  get reported(): unknown {
    return this.reports.reported
  }

  get serviceTier(): string {
    return this.reports.serviceTier
  }

  get charactersSinceUsage(): number {
    return this.reports.charactersBeyond(this.characters)
  }

  get isUsageWhole(): boolean {
    return this.reports.isWhole(this.characters)
  }

  get isAnswer(): boolean {
    return this.characters > 0 || this.reports.isOutputReported
  }

  /** Keeps the first error that comes before content, and the first that comes after it. */
  protected err(payload: Buffer): void {
    if (this.isAnswer) this.laterError ??= Buffer.from(payload)
    else this.firstError ??= Buffer.from(payload)
  }
}
