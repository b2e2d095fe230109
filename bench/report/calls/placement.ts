import { type Placement, readPlacement } from '../../harness/core-latency.ts'
import type { Metrics } from '../../workloads/workload.ts'
import { BASELINE, MIN_ROUNDS, medianIn, type Results, type Row } from './results.ts'

/** Splits a run by the placement of the cores: samples of one placement are never compared with those of another. */

const placementOfSample = ({ coreRoundTripNs }: Metrics): Placement | null =>
  coreRoundTripNs === undefined ? null : readPlacement(coreRoundTripNs)

const PLACEMENTS: readonly Placement[] = ['shared cache', 'separate caches']

/** Returns the placements in which samples were taken; none for a run that is not pinned to cores. */
export const placementsIn = (rows: readonly Row[]): Placement[] => {
  const seen = new Set(rows.flatMap(({ rounds }) => rounds.flat().map(placementOfSample)))
  return PLACEMENTS.filter((placement) => seen.has(placement))
}

const rowIn = (row: Row, placement: Placement): Row => ({
  ...row,
  rounds: row.rounds.map((samples) => samples.filter((sample) => placementOfSample(sample) === placement)),
})

/** Returns the run with the samples of only one placement. A row with too few of them has none. */
export const inPlacement = (results: Results, placement: Placement): Results => {
  const least = Math.min(MIN_ROUNDS, results.rounds)
  const rows = results.rows.map((row) => rowIn(row, placement))
  return {
    ...results,
    rows: rows.map((row) => (row.rounds.flat().length < least ? { ...row, rounds: [] } : row)),
  }
}

/** Whether the rows of one workload can be compared in one placement at least. */
export const areComparable = (rows: readonly Row[]): boolean => {
  const placements = placementsIn(rows)
  return placements.length === 0 || placements.some((placement) => areComparableIn(rows, placement))
}

const areComparableIn = (rows: readonly Row[], placement: Placement): boolean => {
  const measured = rows.filter(({ failed }) => failed === null).map((row) => rowIn(row, placement))
  const baseline = measured.find(({ subject }) => subject === BASELINE)
  const isOfBoth = (samples: readonly Metrics[], round: number): boolean =>
    samples.length > 0 && (baseline === undefined || (baseline.rounds[round]?.length ?? 0) > 0)
  return measured.length > 0 && measured.every(({ rounds }) => rounds.filter(isOfBoth).length >= MIN_ROUNDS)
}

/** Returns how many samples one placement has, and the median round trip between the cores in nanoseconds. */
export const samplesIn = (
  { rows }: Results,
  placement: Placement,
): { count: number; roundTripNs: number } => {
  const samples = rows.flatMap((row) => rowIn(row, placement).rounds.flat())
  return { count: samples.length, roundTripNs: medianIn(samples, 'coreRoundTripNs') ?? Number.NaN }
}

/** The placements to report: those in which a workload can be compared, or else all that have samples. */
const reportedPlacements = ({ rows }: Results): Placement[] => {
  const seen = placementsIn(rows)
  const workloads = [...Map.groupBy(rows, ({ workload }) => workload).values()]
  const comparable = seen.filter((placement) => workloads.some((each) => areComparableIn(each, placement)))
  return comparable.length > 0 ? comparable : seen
}

/** Calls `make` for each placement to report; once for a run that is not pinned to cores. */
export const inEachPlacement = <T>(results: Results, make: (part: Results, where: string) => T): T[] => {
  const placements = reportedPlacements(results)
  if (placements.length === 0) return [make(results, '')]
  return placements.map((placement) => make(inPlacement(results, placement), `, ${placement}`))
}
