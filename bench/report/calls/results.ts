import type { RunFacts } from '../../harness/program.ts'
import { median } from '../../harness/statistics.ts'
import type { Metrics } from '../../workloads/workload.ts'

export interface SubjectRecord {
  name: string
  title: string
  /** Empty when it was never started. */
  version: string
  /** Why it did not take part, or null. */
  skipped: string | null
}

/** What one subject did under one workload. */
export interface Row {
  workload: string
  subject: string
  /** What each round saw, look by look. */
  rounds: (readonly Metrics[])[]
  /** What it answered wrongly, or null. A failed row has no figures. */
  failed: string | null
}

/** What costs are told in times of. */
export const YARDSTICK = 'nginx'

/** A whole run, as it is written to JSON. */
export interface Results extends RunFacts {
  size: string
  rounds: number
  pinned: boolean
  subjects: SubjectRecord[]
  rows: Row[]
}

const rowOf = (results: Results, workload: string, subject: string): Row | undefined =>
  results.rows.find((row) => row.workload === workload && row.subject === subject)

export const failureOf = (results: Results, workload: string, subject: string): string | null =>
  rowOf(results, workload, subject)?.failed ?? null

/** The median over some looks, or null where none measured it. */
export const medianIn = (looks: readonly Metrics[], metric: string): number | null => {
  const values = looks.map((look) => look[metric]).filter((value) => value !== undefined)
  return values.length === 0 ? null : median(values)
}

/** The median over all looks, or null where it was not measured. */
export const medianOf = (
  results: Results,
  workload: string,
  subject: string,
  metric: string,
): number | null => {
  const row = rowOf(results, workload, subject)
  return row === undefined || row.failed !== null ? null : medianIn(row.rounds.flat(), metric)
}

/** A median of fewer is none. */
export const LEAST_ROUNDS = 3

const compared = (
  results: Results,
  workload: string,
  [subject, base]: readonly [subject: string, base: string],
  metric: string,
  compare: (value: number, baseValue: number) => number,
): number | null => {
  const row = rowOf(results, workload, subject)
  const baseRow = rowOf(results, workload, base)
  if (!row || !baseRow || row.failed !== null || baseRow.failed !== null) return null
  const found = row.rounds.flatMap((looks, round) => {
    const value = medianIn(looks, metric)
    const baseValue = medianIn(baseRow.rounds[round] ?? [], metric)
    return value === null || baseValue === null ? [] : [compare(value, baseValue)]
  })
  return found.length < Math.min(LEAST_ROUNDS, results.rounds) ? null : median(found)
}

/**
 * How many times another subject's figure it is: within each round first, so that what slowed the machine for a while
 * weighs on both, then the median. Null where that was not measured often enough.
 */
export const ratioTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value / baseValue)

/** What it is above another subject's figure, taken in the same way. */
export const addedTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value - baseValue)
