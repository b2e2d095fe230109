import { type Place, placeOf } from '../harness/core-distance.ts'
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
  /** As often as a round looks, one round after the other. */
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

const placeOfRound = ({ coreRoundTripNs }: Metrics): Place | null =>
  coreRoundTripNs === undefined ? null : placeOf(coreRoundTripNs)

/** Where the cores were while something was found; none in a run that could not tell. */
export const placesIn = ({ rows }: Results): Place[] =>
  (['near', 'far'] as const).filter((place) =>
    rows.some(({ rounds }) => rounds.some((round) => placeOfRound(round) === place)),
  )

/** A median of fewer is none. */
const LEAST_ROUNDS = 3

/** The run as if only that had been found which was found with the cores in that place. */
export const inPlace = (results: Results, place: Place): Results => ({
  ...results,
  rows: results.rows.map((row) => {
    const rounds = row.rounds.filter((round) => placeOfRound(round) === place)
    return { ...row, rounds: rounds.length < Math.min(LEAST_ROUNDS, results.rounds) ? [] : rounds }
  }),
})

/** How often something was found with the cores in that place, and the median of how far apart they were. */
export const looksIn = ({ rows }: Results, place: Place): { count: number; roundTripNs: number } => {
  const rounds = rows.flatMap((row) => row.rounds).filter((round) => placeOfRound(round) === place)
  return { count: rounds.length, roundTripNs: median(rounds.map((round) => round.coreRoundTripNs!)) }
}

const compared = (
  results: Results,
  workload: string,
  [subject, base]: readonly [subject: string, base: string],
  metric: string,
  compare: (value: number, baseValue: number) => number,
): number | null => {
  const value = medianOf(results, workload, subject, metric)
  const baseValue = medianOf(results, workload, base, metric)
  return value === null || baseValue === null ? null : compare(value, baseValue)
}

/** One subject's median over another's. Null where either was not measured. */
export const ratioTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value / baseValue)

/** What one subject's median is above another's. Null where either was not measured. */
export const addedTo = (results: Results, workload: string, subject: string, base: string, metric: string) =>
  compared(results, workload, [subject, base], metric, (value, baseValue) => value - baseValue)

/** What a title says where figures are of one place alone. */
const PLACE_TEXT: Record<Place, string> = {
  near: 'cores near each other',
  far: 'cores far from each other',
}

/** Something for each place that the run found its cores in; once for all of it in a run that could not tell. */
export const inEachPlace = <T>(results: Results, make: (found: Results, where: string) => T): T[] => {
  const places = placesIn(results)
  if (places.length === 0) return [make(results, '')]
  return places.map((place) => make(inPlace(results, place), `, ${PLACE_TEXT[place]}`))
}
