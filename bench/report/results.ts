import type { RunFacts } from '../harness/program.ts'
import { median } from '../harness/statistics.ts'
import type { Metrics } from '../workloads/workload.ts'

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
  rounds: Metrics[]
  /** What it answered wrongly, or null. A failed row has no figures. */
  failed: string | null
}

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

/** The median over the rounds, or null where it was not measured. */
export const medianOf = (
  results: Results,
  workload: string,
  subject: string,
  metric: string,
): number | null => {
  const row = rowOf(results, workload, subject)
  const values = row?.failed
    ? []
    : (row?.rounds ?? []).map((round) => round[metric]).filter((v) => v !== undefined)
  return values.length === 0 ? null : median(values)
}

/**
 * The median over the rounds of a figure set against the same round of another subject, so that what slowed the
 * machine for a while weighs on both. Null where either was not measured.
 */
export const comparedTo = (
  results: Results,
  workload: string,
  subject: string,
  base: string,
  metric: string,
  compare: (value: number, baseValue: number) => number,
): number | null => {
  const row = rowOf(results, workload, subject)
  const baseRow = rowOf(results, workload, base)
  if (!row || !baseRow || row.failed || baseRow.failed) return null
  const pairs = row.rounds
    .map((round, i) => [round[metric], baseRow.rounds[i]?.[metric]] as const)
    .filter((pair): pair is readonly [number, number] => pair[0] !== undefined && pair[1] !== undefined)
  return pairs.length === 0 ? null : median(pairs.map(([value, baseValue]) => compare(value, baseValue)))
}

export const ratioTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  comparedTo(results, workload, subject, base, metric, (value, baseValue) => value / baseValue)

export const addedTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  comparedTo(results, workload, subject, base, metric, (value, baseValue) => value - baseValue)
