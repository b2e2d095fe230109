import { type Place, placeOf } from '../../harness/core-latency.ts'
import type { Metrics } from '../../workloads/workload.ts'
import { LEAST_ROUNDS, medianIn, type Results, type Row, YARDSTICK } from './results.ts'

/** Where the cores were while a figure was taken: what was seen in one place is compared with nothing of the other. */

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

/** Whether the rows of one workload can be compared, with the cores in one place at least. */
export const areComparable = (rows: readonly Row[]): boolean => {
  const places = placesIn(rows)
  return places.length === 0 || places.some((place) => areComparableIn(rows, place))
}

const areComparableIn = (rows: readonly Row[], place: Place): boolean => {
  const seen = rows.filter(({ failed }) => failed === null).map((row) => seenIn(row, place))
  const yardstick = seen.find(({ subject }) => subject === YARDSTICK)
  const isOfBoth = (looks: readonly Metrics[], round: number): boolean =>
    looks.length > 0 && (yardstick === undefined || (yardstick.rounds[round]?.length ?? 0) > 0)
  return seen.length > 0 && seen.every(({ rounds }) => rounds.filter(isOfBoth).length >= LEAST_ROUNDS)
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
