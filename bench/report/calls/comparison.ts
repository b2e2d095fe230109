import { figure, type Table } from '../table.ts'
import { inEachPlacement } from './placement.ts'
import { computeMedian, type Results, type SubjectRecord, toFailure } from './results.ts'

/** Gateways side by side: a column for each, a row for each figure. */

/** Subjects that are parts or variants of another one. */
const LEFT_OUT = ['direct', 'uws-undici', 'uws-client', 'tollgate-no-settlement', 'tollgate-stored-first']
const REASON_CHARACTERS = 80

/** Figures that are counts. */
const WHOLE = ['processes']
const print = (metric: string, value: number | null): string =>
  value !== null && WHOLE.includes(metric) ? String(value) : figure(value)

/** Returns a figure, or why there is none. */
const printFigure = (results: Results, subject: string, workload: string, metric: string): string => {
  const reason = toFailure(results, workload, subject)
  return reason === null
    ? print(metric, computeMedian(results, workload, subject, metric))
    : `failed (${reason.replace(/\s+/g, ' ').slice(0, REASON_CHARACTERS)})`
}

type Row = readonly [title: string, workload: string, ...metrics: string[]]

const SPEED: readonly Row[] = [
  ['CPU of its process per small call, µs', 'small', 'cpuPerCallUs'],
  ['the same with a conversation of 100 KB, µs', 'long', 'cpuPerCallUs'],
  ['small calls a second on one core', 'small', 'callsPerSecond'],
  ['CPU per chunk of a burst, µs', 'burst', 'cpuPerChunkUs'],
  ['CPU per paced chunk, 20 streams, µs', 'paced-few', 'cpuPerChunkUs'],
  ['CPU per paced chunk, hundreds of streams, µs', 'paced', 'cpuPerChunkUs'],
  ['small call at 50 a second, p50 and p99, µs', 'calm', 'p50Us', 'p99Us'],
  ['small call at 400 a second, p50 and p99, µs', 'latency', 'p50Us', 'p99Us'],
  ['first byte of a stream at 40 a second, p50 and p99, µs', 'calm-first-byte', 'p50Us', 'p99Us'],
  ['first byte of a stream at 100 a second, p50 and p99, µs', 'first-byte', 'p50Us', 'p99Us'],
]
/** Figures that do not depend on the placement of the cores. */
const SIZE: readonly Row[] = [
  ['CPU of all processes per settled call, µs', 'settled', 'cpuPerCallUs'],
  ['start until it takes calls, s', 'rest', 'readySeconds'],
  ['memory of all processes at rest, MB', 'rest', 'memoryMb'],
  ['the same after the load, MB', 'afterwards', 'memoryMb'],
  ['CPU of all processes at rest, % of a core', 'rest', 'busyPercent'],
  ['processes', 'rest', 'processes'],
  ['installed, MB', 'rest', 'installedMb'],
]

const printRow = (
  results: Results,
  subjects: readonly SubjectRecord[],
  [title, workload, ...metrics]: Row,
) => [
  title,
  ...subjects.map(({ name }) =>
    toFailure(results, workload, name) === null
      ? metrics.map((metric) => printFigure(results, name, workload, metric)).join(', ')
      : printFigure(results, name, workload, metrics[0]!),
  ),
]

const isMeasured = (row: readonly string[]): boolean =>
  row.slice(1).some((cell) => !/^(failed|[–, ]*$)/.test(cell))

/** The proxy does none of a gateway's work: it is the yardstick, and no competitor. */
const YARDSTICK = 'nginx'
const OWN = 'tollgate'
/** Figures of which more is better. */
const MORE_IS_BETTER = ['callsPerSecond']

/** Lists the figures in which another gateway is better, with the best one. */
const listLosses = (results: Results, subjects: readonly SubjectRecord[], rows: readonly Row[]): string[][] =>
  rows.flatMap(([title, workload, ...metrics]) =>
    metrics.flatMap((metric) => {
      const own = computeMedian(results, workload, OWN, metric)
      const sign = MORE_IS_BETTER.includes(metric) ? -1 : 1
      const [best] = subjects
        .filter(({ name }) => name !== OWN && name !== YARDSTICK)
        .map((subject) => ({ subject, value: computeMedian(results, workload, subject.name, metric) }))
        .filter(({ value }) => value !== null && own !== null && sign * value < sign * own)
        .sort((one, other) => sign * (one.value! - other.value!))
      if (best === undefined) return []
      const of = metrics.length === 1 ? '' : ` (${metric.slice(0, 3)})`
      return [[title + of, print(metric, own), `${print(metric, best.value)} (${best.subject.title})`]]
    }),
  )

export const comparisonTables = (results: Results): Table[] => {
  const subjects = results.subjects.filter(
    ({ name, skipped }) => skipped === null && !LEFT_OUT.includes(name),
  )
  const columns = ['', ...subjects.map(({ title }) => title)]
  const printRows = (part: Results, rows: readonly Row[]) =>
    rows.map((row) => printRow(part, subjects, row)).filter(isMeasured)
  const speed = inEachPlacement(results, (part, where) => ({
    title: `Side by side: speed${where}`,
    columns,
    rows: printRows(part, SPEED),
  }))
  const work = ['what it does with a call', ...subjects.map((subject) => subject.work)]
  const size = printRows(results, SIZE)
  const sizes = {
    title: 'Side by side: work and size',
    columns,
    rows: size.length === 0 ? [] : [work, ...size],
  }
  const losses = inEachPlacement(results, (part, where) => ({
    title: `Where Tollgate loses${where}`,
    columns: ['', 'Tollgate', 'the best other gateway'],
    rows: [...listLosses(part, subjects, SPEED), ...listLosses(results, subjects, SIZE)],
  }))
  return [...speed, sizes, ...losses].filter(({ rows }) => rows.length > 0)
}
