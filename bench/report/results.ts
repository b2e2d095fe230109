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
  /** What each round saw, look by look. */
  rounds: (readonly Metrics[])[]
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

const medianIn = (looks: readonly Metrics[], metric: string): number | null => {
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
const LEAST_ROUNDS = 3

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

const placeOfLook = ({ coreRoundTripNs }: Metrics): Place | null =>
  coreRoundTripNs === undefined ? null : placeOf(coreRoundTripNs)

const PLACES: readonly Place[] = ['near', 'far']

/** Where the cores were while something was seen; none in a run that could not tell. */
export const placesIn = (rows: readonly Row[]): Place[] => {
  const seen = new Set(rows.flatMap(({ rounds }) => rounds.flat().map(placeOfLook)))
  return PLACES.filter((place) => seen.has(place))
}

const seenIn = (row: Row, place: Place): Row => ({
  ...row,
  rounds: row.rounds.map((looks) => looks.filter((look) => placeOfLook(look) === place)),
})

/** The run as if only that had been seen which was seen with the cores in that place, where it was often enough. */
export const inPlace = (results: Results, place: Place): Results => {
  const least = Math.min(LEAST_ROUNDS, results.rounds)
  const rows = results.rows.map((row) => seenIn(row, place))
  return {
    ...results,
    rows: rows.map((row) => (row.rounds.flat().length < least ? { ...row, rounds: [] } : row)),
  }
}

/** What costs are told in times of. */
export const YARDSTICK = 'nginx'

/** Whether the rows of one workload can be compared, with the cores in one place at least. */
export const areComparable = (rows: readonly Row[]): boolean => {
  const places = placesIn(rows)
  return places.length === 0 || places.some((place) => areComparableIn(rows, place))
}

const areComparableIn = (rows: readonly Row[], place: Place): boolean => {
  const seen = rows.filter(({ failed }) => failed === null).map((row) => seenIn(row, place))
  const yardstick = seen.find(({ subject }) => subject === YARDSTICK)
  const isOfBoth = (looks: readonly Metrics[], round: number): boolean =>
    looks.length > 0 && (yardstick === undefined || yardstick.rounds[round]!.length > 0)
  return seen.every(({ rounds }) => rounds.filter(isOfBoth).length >= LEAST_ROUNDS)
}

/** How often something was seen with the cores in that place, and the median of how far apart they were. */
export const looksIn = ({ rows }: Results, place: Place): { count: number; roundTripNs: number } => {
  const looks = rows.flatMap((row) => seenIn(row, place).rounds.flat())
  return { count: looks.length, roundTripNs: medianIn(looks, 'coreRoundTripNs') ?? Number.NaN }
}

/** The places worth telling of: where a workload can be compared, or else wherever something was seen. */
const toldPlaces = ({ rows }: Results): Place[] => {
  const seen = placesIn(rows)
  const workloads = [...Map.groupBy(rows, ({ workload }) => workload).values()]
  const comparable = seen.filter((place) => workloads.some((each) => areComparableIn(each, place)))
  return comparable.length > 0 ? comparable : seen
}

/** Something for each place of the cores that is worth telling of; once for all in a run that could not tell them. */
export const inEachPlace = <T>(results: Results, make: (found: Results, where: string) => T): T[] => {
  const places = toldPlaces(results)
  if (places.length === 0) return [make(results, '')]
  return places.map((place) => make(inPlace(results, place), `, cores ${place}`))
}
