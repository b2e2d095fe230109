import type { RunFacts } from '../../harness/program.ts'
import { median } from '../../harness/statistics.ts'
import type { Metrics } from '../../workloads/workload.ts'

export interface SubjectRecord {
  name: string
  title: string
  /** What it does with a call besides passing it on. */
  work: string
  /** Empty when it was never started. */
  version: string
  settings: readonly string[]
  /** Why it did not take part, or null. */
  skipped: string | null
}

/** The samples of one subject under one workload. */
export interface Row {
  workload: string
  subject: string
  /** The samples of each round. */
  rounds: (readonly Metrics[])[]
  /** The wrong answer, or null. A failed row has no figures. */
  failed: string | null
}

/** The subject that ratios refer to. */
export const BASELINE = 'nginx'

/** A whole run, as it is written to JSON. */
export interface Results extends RunFacts {
  size: string
  rounds: number
  pinned: boolean
  subjects: SubjectRecord[]
  rows: Row[]
}

const toRow = (results: Results, workload: string, subject: string): Row | undefined =>
  results.rows.find((row) => row.workload === workload && row.subject === subject)

export const toFailure = (results: Results, workload: string, subject: string): string | null =>
  toRow(results, workload, subject)?.failed ?? null

/** Returns the median over some samples, or null where none measured it. */
export const medianIn = (samples: readonly Metrics[], metric: string): number | null => {
  const values = samples.map((sample) => sample[metric]).filter((value) => value !== undefined)
  return values.length === 0 ? null : median(values)
}

/** Returns the median over all samples, or null where it was not measured. */
export const computeMedian = (
  results: Results,
  workload: string,
  subject: string,
  metric: string,
): number | null => {
  const row = toRow(results, workload, subject)
  return row === undefined || row.failed !== null ? null : medianIn(row.rounds.flat(), metric)
}

/** The fewest rounds that give a median. */
export const MIN_ROUNDS = 3

const compared = (
  results: Results,
  workload: string,
  [subject, base]: readonly [subject: string, base: string],
  metric: string,
  compare: (value: number, baseValue: number) => number,
): number | null => {
  const row = toRow(results, workload, subject)
  const baseRow = toRow(results, workload, base)
  if (!row || !baseRow || row.failed !== null || baseRow.failed !== null) return null
  const found = row.rounds.flatMap((samples, round) => {
    const value = medianIn(samples, metric)
    const baseValue = medianIn(baseRow.rounds[round] ?? [], metric)
    return value === null || baseValue === null ? [] : [compare(value, baseValue)]
  })
  return found.length < Math.min(MIN_ROUNDS, results.rounds) ? null : median(found)
}

/**
 * Returns the ratio of a subject's figure to another's: the median over the ratios of each round, so that a slow phase
 * of the machine affects both. Returns null where too few rounds measured both.
 */
export const ratioTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value / baseValue)

/** Returns the difference of a subject's figure to another's, computed in the same way. */
export const addedTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value - baseValue)
