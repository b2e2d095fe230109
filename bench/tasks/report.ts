/** The report of a run: text, tables and a chart. */
import type { Quantiles } from '../harness/statistics.ts'
import type { Bar, Chart, Panel } from '../report/chart.ts'
import { chartLine, type Report, runLines } from '../report/report.ts'
import { figure, type Table } from '../report/table.ts'
import type { CpuUse, TaskResults } from './results.ts'

const METHOD = `The service runs with embedded engines, one gateway, and one process as settler and task worker. The bench submits videos through the API; its
upstream, in another process, has the task contract (docs/upstream-task.md). Nothing is pinned to a core: service,
engines, upstream and bench share the machine.

- **CPU** is what Linux counts for every process of the service and its engines, in four phases: idle, while tasks are
  submitted (with polls of the first ones), while all are open, and while they end. The figures per poll exclude idle
  use; all others include it.
- **A poll** is one request to the upstream: the task worker takes the message, reads the row, requests the state,
  and delays the message. A poll that finds no change writes nothing.
- **Lateness** is by the upstream's clock: a poll is due a fixed time after the previous answer (a tenth of the task's
  age, for videos at least 1 s and at most 10 s). Transfer and waiting count.
- **Settled** means that the task's row is booked (\`usage_rows.booked_at\`). Most of the time from the upstream's end to
  the row passes before the next poll; the rest is the copy of the file, the charge and the row.
- Every task must be submitted once, be delivered and have one row; no hold may be open, and the wallets must agree
  with the ledger. Otherwise the run fails.
- A quantile is the nearest rank: always a measured value.`

const ROLES: readonly (readonly [role: string, title: string])[] = [
  ['gateway', 'Gateway'],
  ['settler', 'Settler and task worker'],
  ['supervisor', 'Supervisor'],
  ['postgres', 'PostgreSQL'],
  ['nats', 'NATS'],
  ['clickhouse', 'ClickHouse'],
]

const sumValues = (values: Readonly<Record<string, number>>): number =>
  Object.values(values).reduce((sum, value) => sum + value, 0)

const toRun = ({ isFull, tasks, seconds }: TaskResults): string =>
  `${isFull ? 'full' : 'partial'} run of ${tasks.toLocaleString('en-US')} tasks in ${Math.round(seconds)} s`

/** Returns the CPU per poll without the role's idle use. */
const computePollUs = ({ open, idle }: TaskResults, role: string): number => {
  const atRest = ((idle.cpuMsByRole[role] ?? 0) / idle.seconds) * open.seconds
  return (Math.max(0, (open.cpuMsByRole[role] ?? 0) - atRest) * 1_000) / open.polls
}

const sumPollUs = (results: TaskResults): number =>
  ROLES.reduce((sum, [role]) => sum + computePollUs(results, role), 0)

const computePercentOfCore = ({ cpuMsByRole, seconds }: CpuUse, role: string): number =>
  (cpuMsByRole[role] ?? 0) / seconds / 10

const makeTimesRow = (title: string, { p50Ms, p99Ms, maxMs }: Quantiles): string[] => [
  title,
  figure(p50Ms),
  figure(p99Ms),
  figure(maxMs),
]

const makeTimesTable = ({ open, end }: TaskResults): Table => ({
  title: 'Time, milliseconds',
  columns: ['', 'p50', 'p99', 'max'],
  rows: [
    makeTimesRow('Lateness of a poll', open.lateness),
    makeTimesRow("From the upstream's end to the settled row", end.endToRow),
    makeTimesRow('… from the poll that found it', end.seenToRow),
  ],
})

const makeCostTable = (results: TaskResults): Table => {
  const { idle, submit, open, end, tasks } = results
  const perTask = ({ cpuMsByRole }: CpuUse, role: string) => figure((cpuMsByRole[role] ?? 0) / tasks)
  return {
    title: 'CPU and memory',
    columns: [
      '',
      'poll, µs',
      'idle, % of a core',
      'all open, % of a core',
      'submit, ms',
      'end, ms',
      'memory, MiB',
    ],
    rows: [
      ...ROLES.map(([role, title]) => [
        title,
        figure(computePollUs(results, role)),
        figure(computePercentOfCore(idle, role)),
        figure(computePercentOfCore(open, role)),
        perTask(submit, role),
        perTask(end, role),
        figure(open.residentMiBByRole[role] ?? 0),
      ]),
      [
        'All',
        figure(sumPollUs(results)),
        figure(sumValues(idle.cpuMsByRole) / idle.seconds / 10),
        figure(sumValues(open.cpuMsByRole) / open.seconds / 10),
        figure(sumValues(submit.cpuMsByRole) / tasks),
        figure(sumValues(end.cpuMsByRole) / tasks),
        figure(sumValues(open.residentMiBByRole)),
      ],
    ],
  }
}

const writeRemarks = ({ submit, open, end, tasks }: TaskResults): string[] => [
  `${tasks.toLocaleString('en-US')} tasks were submitted in ${Math.round(submit.seconds)} s, ${figure(tasks / submit.seconds)} a second, each answered after the upstream had it.`,
  `While all were open, none younger than ${open.ageSeconds} s, the upstream got ${open.polls.toLocaleString('en-US')} polls in ${Math.round(open.seconds)} s: ${figure(open.polls / open.seconds)} a second.`,
  `The settler and task worker grew by ${figure((open.residentMiBByRole.settler ?? 0) - open.tasksMiBBefore)} MiB with them: ${figure((((open.residentMiBByRole.settler ?? 0) - open.tasksMiBBefore) * 1024) / tasks)} KiB a task.`,
  `The upstream ended them within ${end.spreadSeconds} s; the last row was booked after ${Math.round(end.seconds)} s.`,
]

const makeBar = (label: string, value: number, own = true): Bar => ({ label, value, note: '', own })
const makeTimeBars = ({ p50Ms, p99Ms }: Quantiles): Bar[] => [makeBar('p50', p50Ms), makeBar('p99', p99Ms)]

const drawPanels = (results: TaskResults): Panel[] => {
  const { open, end } = results
  const engines = new Set(['postgres', 'nats', 'clickhouse'])
  const makeRoleBars = (measureRole: (role: string) => number): Bar[] =>
    ROLES.map(([role, title]) => makeBar(title, measureRole(role), !engines.has(role)))
  return [
    {
      title: 'CPU of one poll',
      unit: 'µs',
      aim: null,
      bars: makeRoleBars((role) => computePollUs(results, role)),
    },
    {
      title: 'Memory with all open',
      unit: 'MiB',
      aim: null,
      bars: makeRoleBars((role) => open.residentMiBByRole[role] ?? 0),
    },
    { title: 'Lateness of a poll', unit: 'ms', aim: null, bars: makeTimeBars(open.lateness) },
    {
      title: 'From the end to the row',
      unit: 'ms',
      aim: null,
      bars: [
        ...makeTimeBars(end.endToRow),
        ...makeTimeBars(end.seenToRow).map((one) => ({ ...one, label: `${one.label}, from the poll` })),
      ],
    },
  ]
}

const drawChart = (results: TaskResults): Chart => ({
  title: `${results.tasks.toLocaleString('en-US')} open tasks`,
  subtitle: [chartLine(results), 'The cost of polling them until they end. »: longer than drawn.'],
  panels: drawPanels(results),
})

export const printReport = (results: TaskResults): Report => ({
  title: 'What open tasks cost',
  chart: drawChart(results),
  chartText: 'CPU, memory and time of open tasks',
  run: runLines(results, toRun(results)),
  tables: [makeTimesTable(results), makeCostTable(results)],
  remarks: writeRemarks(results),
  failures: results.failures,
  method: METHOD,
})
