import { aimsTable } from '../aim.ts'
import { figure, type Table } from '../table.ts'
import { listAims } from './aims.ts'
import { comparisonTables } from './comparison.ts'
import { inEachPlacement } from './placement.ts'
import {
  addedTo,
  BASELINE,
  computeMedian,
  type Results,
  ratioTo,
  type SubjectRecord,
  toFailure,
} from './results.ts'

/** The tables of a run. A table without figures is left out. */

type Cell = (results: Results, subject: string) => string

/** A figure, or FAILED for a subject that answered wrongly. */
const measured =
  (workload: string, metric: string): Cell =>
  (results, subject) =>
    toFailure(results, workload, subject)
      ? 'FAILED'
      : figure(computeMedian(results, workload, subject, metric))

const timesBaseline =
  (workload: string, metric: string): Cell =>
  (results, subject) =>
    figure(ratioTo(results, workload, subject, BASELINE, metric))

const added =
  (workload: string, metric: string): Cell =>
  (results, subject) =>
    toFailure(results, workload, subject)
      ? 'FAILED'
      : figure(addedTo(results, workload, subject, 'direct', metric))

interface Column {
  title: string
  cell: Cell
}

const column = (title: string, cell: Cell): Column => ({ title, cell })

const COST: Column[] = [
  column('calls/s', measured('small', 'callsPerSecond')),
  column('core use %', measured('small', 'busyPercent')),
  column('µs/call', measured('small', 'cpuPerCallUs')),
  column('x nginx', timesBaseline('small', 'cpuPerCallUs')),
  column('µs/call at 1,000/s', measured('small-even', 'cpuPerCallUs')),
  column('x nginx', timesBaseline('small-even', 'cpuPerCallUs')),
  column('µs/call of 100 KB', measured('long', 'cpuPerCallUs')),
  column('x nginx', timesBaseline('long', 'cpuPerCallUs')),
  column('µs/chunk, burst', measured('burst', 'cpuPerChunkUs')),
  column('µs/chunk, paced', measured('paced', 'cpuPerChunkUs')),
  column('x nginx', timesBaseline('paced', 'cpuPerChunkUs')),
  column('RSS MB', measured('small', 'residentMb')),
]

const TIME: Column[] = [
  column('latency p50 µs', measured('latency', 'p50Us')),
  column('p99', measured('latency', 'p99Us')),
  column('added p50', added('latency', 'p50Us')),
  column('added p99', added('latency', 'p99Us')),
  column('with engines stopped', added('latency', 'p99AloneUs')),
  column('first byte p50 µs', measured('first-byte', 'p50Us')),
  column('p99', measured('first-byte', 'p99Us')),
  column('added p50', added('first-byte', 'p50Us')),
  column('added p99', added('first-byte', 'p99Us')),
  column('with engines stopped', added('first-byte', 'p99AloneUs')),
]

const TLS: Column[] = [
  column('calls/s', measured('small-tls', 'callsPerSecond')),
  column('µs/call', measured('small-tls', 'cpuPerCallUs')),
  column('x nginx', timesBaseline('small-tls', 'cpuPerCallUs')),
  column('µs/chunk, paced', measured('paced-tls', 'cpuPerChunkUs')),
  column('x nginx', timesBaseline('paced-tls', 'cpuPerChunkUs')),
]

const TRANSLATED: Column[] = [
  column('small call, native', measured('small', 'cpuPerCallUs')),
  column('from messages', measured('small-messages', 'cpuPerCallUs')),
  column('from generate-content', measured('small-generate-content', 'cpuPerCallUs')),
  column('paced chunk, native', measured('paced', 'cpuPerChunkUs')),
  column('from messages', measured('paced-messages', 'cpuPerChunkUs')),
  column('from generate-content', measured('paced-generate-content', 'cpuPerChunkUs')),
]

const MEMORY: Column[] = [
  column('streams', measured('memory', 'streams')),
  column('KB/stream', measured('memory', 'kbPerStream')),
  column('RSS MB', measured('memory', 'residentMb')),
  column('core use %', measured('memory', 'busyPercent')),
]

const subjectTable = (results: Results, title: string, columns: Column[]): Table | null => {
  const rows = results.subjects
    .filter(({ skipped }) => skipped === null)
    .map(({ name, title: subject }) => [subject, ...columns.map(({ cell }) => cell(results, name))])
    .filter((row) => row.slice(1).some((cell) => cell !== '–'))
  return rows.length === 0 ? null : { title, columns: ['', ...columns.map((each) => each.title)], rows }
}

const LOGGED: Column[] = [
  column('p50 ms', measured('logged', 'p50Ms')),
  column('p99', measured('logged', 'p99Ms')),
  column('longest', measured('logged', 'maxMs')),
]

/** Tables of figures that depend on the placement of the cores. */
const placedTables = (results: Results, title: string, columns: Column[]): (Table | null)[] =>
  inEachPlacement(results, (part, where) => subjectTable(part, `${title}${where}`, columns))

const PER_CALL_SUFFIX = 'PerCallUs'

/** CPU of all processes per settled call, by role. */
const settledTable = (results: Results): Table | null => {
  const rows = results.rows.filter(({ workload, rounds }) => workload === 'settled' && rounds.length > 0)
  const first = rows[0]?.rounds[0]?.[0]
  if (!first) return null
  const roles = Object.keys(first).filter((key) => key.endsWith(PER_CALL_SUFFIX) && key !== 'cpuPerCallUs')
  const printTitle = (subject: string): string =>
    results.subjects.find(({ name }) => name === subject)?.title ?? subject
  const cells = (subject: string, metrics: string[]): string[] =>
    metrics.map((metric) => measured('settled', metric)(results, subject))
  return {
    title: 'CPU of all processes and engines together, µs per settled call',
    columns: ['', 'all', ...roles.map((role) => role.slice(0, -PER_CALL_SUFFIX.length)), 'settled/s'],
    rows: rows.map(({ subject }) => [
      printTitle(subject),
      ...cells(subject, ['cpuPerCallUs', ...roles, 'settledPerSecond']),
    ]),
  }
}

export const printTables = (results: Results): Table[] =>
  [
    ...comparisonTables(results),
    ...placedTables(results, 'CPU of the gateway process alone', COST),
    ...placedTables(results, 'Latency at a steady rate', TIME),
    ...placedTables(results, 'TLS to the upstream: CPU of the gateway process alone', TLS),
    ...placedTables(results, 'Translated and native: µs of CPU of the gateway process', TRANSLATED),
    subjectTable(results, 'Open streams in one process', MEMORY),
    settledTable(results),
    subjectTable(results, 'The row of a call in the call log, from the end of its answer', LOGGED),
    aimsTable('Aims: Tollgate with everything on', listAims(results)),
  ].filter((table) => table !== null)

/** Returns a line for each subject that was skipped or answered wrongly. */
export const printRemarks = (results: Results): string[] => [
  ...results.subjects.flatMap(({ title, settings }) =>
    settings.map((setting) => `settings of ${title}: ${setting}`),
  ),
  ...results.subjects
    .filter((subject): subject is SubjectRecord & { skipped: string } => subject.skipped !== null)
    .map(({ title, skipped }) => `skipped: ${title}: ${skipped}`),
  ...results.rows
    .filter(({ failed }) => failed !== null)
    .map(({ workload, subject, failed }) => `FAILED: ${subject} under ${workload}: ${failed}`),
]
