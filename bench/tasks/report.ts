/** A run in words, tables and a picture. */
import type { Quantiles } from '../harness/statistics.ts'
import type { Bar, Chart, Panel } from '../report/chart.ts'
import { chartLine, type Report, runLines } from '../report/report.ts'
import { figure, type Table } from '../report/table.ts'
import type { CpuUse, TaskResults } from './results.ts'

const METHOD = `The service runs as an operator starts it, with embedded engines, one gateway and one tasks process; videos are
ordered through its API, and an upstream of the bench's own, in a process of its own, speaks the task contract
(docs/upstream-task.md). Nothing is pinned to a core: service, engines, upstream and bench share the machine.

- **CPU** is what Linux counts for every process of the service and its engines, in four pieces: at rest, while tasks
  are submitted (they are looked at meanwhile), while all are open, and while they end. What the service uses at rest is
  taken off the figures for one look; it is left in all others.
- **A look** is one question to the upstream: the message comes back, the row is read, the upstream is asked, and the
  message is put off again. A look that finds nothing new writes nothing.
- **Late** is a look by the upstream's own clock: a look is due so long after its answer to the last as the kind of task
  is polled (a tenth of the task's age, for videos at least 1 s and at most 10 s). Way and waiting are in it.
- **Settled** is a task when its row is booked (\`usage_rows.booked_at\`). From the end at the upstream that takes what is
  left until the next look, most of all; from that look on it is the copy of the file, the charge and the row.
- Every task must have been submitted once, be delivered and have one row; no hold may be open, and the wallets must
  agree with the ledger. A run in which that does not hold has failed.
- A quantile is the nearest rank: always a value that was seen.`

const ROLES: readonly (readonly [role: string, title: string])[] = [
  ['tasks', 'Tasks process'],
  ['gateway', 'Gateway'],
  ['settler', 'Settler'],
  ['supervisor', 'Supervisor'],
  ['postgres', 'PostgreSQL'],
  ['nats', 'NATS'],
  ['clickhouse', 'ClickHouse'],
]

const sumOf = (values: Readonly<Record<string, number>>): number =>
  Object.values(values).reduce((sum, value) => sum + value, 0)

const runOf = ({ isFull, tasks, seconds }: TaskResults): string =>
  `${isFull ? 'full' : 'partial'} run of ${tasks.toLocaleString('en-US')} tasks in ${Math.round(seconds)} s`

/** Without what the role uses at rest. */
const perLookUs = ({ open, idle }: TaskResults, role: string): number => {
  const atRest = ((idle.cpuMsByRole[role] ?? 0) / idle.seconds) * open.seconds
  return (Math.max(0, (open.cpuMsByRole[role] ?? 0) - atRest) * 1_000) / open.looks
}

const allPerLookUs = (results: TaskResults): number =>
  ROLES.reduce((sum, [role]) => sum + perLookUs(results, role), 0)

const percentOfCore = ({ cpuMsByRole, seconds }: CpuUse, role: string): number =>
  (cpuMsByRole[role] ?? 0) / seconds / 10

const times = (title: string, { p50Ms, p99Ms, maxMs }: Quantiles): string[] => [
  title,
  figure(p50Ms),
  figure(p99Ms),
  figure(maxMs),
]

const timesTable = ({ open, end }: TaskResults): Table => ({
  title: 'Time, milliseconds',
  columns: ['', 'p50', 'p99', 'most'],
  rows: [
    times('A look comes late by', open.lateness),
    times("From the upstream's end to the settled row", end.endToRow),
    times('… from the look that found it', end.seenToRow),
  ],
})

const costTable = (results: TaskResults): Table => {
  const { idle, submit, open, end, tasks } = results
  const perTask = ({ cpuMsByRole }: CpuUse, role: string) => figure((cpuMsByRole[role] ?? 0) / tasks)
  return {
    title: 'CPU and memory',
    columns: [
      '',
      'a look, us',
      'at rest, % of a core',
      'all open, % of a core',
      'a submit, ms',
      'an end, ms',
      'memory, MiB',
    ],
    rows: [
      ...ROLES.map(([role, title]) => [
        title,
        figure(perLookUs(results, role)),
        figure(percentOfCore(idle, role)),
        figure(percentOfCore(open, role)),
        perTask(submit, role),
        perTask(end, role),
        figure(open.residentMiBByRole[role] ?? 0),
      ]),
      [
        'All',
        figure(allPerLookUs(results)),
        figure(sumOf(idle.cpuMsByRole) / idle.seconds / 10),
        figure(sumOf(open.cpuMsByRole) / open.seconds / 10),
        figure(sumOf(submit.cpuMsByRole) / tasks),
        figure(sumOf(end.cpuMsByRole) / tasks),
        figure(sumOf(open.residentMiBByRole)),
      ],
    ],
  }
}

const remarks = ({ submit, open, end, tasks }: TaskResults): string[] => [
  `${tasks.toLocaleString('en-US')} tasks were submitted in ${Math.round(submit.seconds)} s, ${figure(tasks / submit.seconds)} a second, each answered when the upstream had it.`,
  `While all were open, none younger than ${open.ageSeconds} s, the upstream was asked ${open.looks.toLocaleString('en-US')} times in ${Math.round(open.seconds)} s: ${figure(open.looks / open.seconds)} looks a second.`,
  `The tasks process grew by ${figure((open.residentMiBByRole.tasks ?? 0) - open.tasksMiBBefore)} MiB with them: ${figure((((open.residentMiBByRole.tasks ?? 0) - open.tasksMiBBefore) * 1024) / tasks)} KiB a task.`,
  `The upstream ended them in the course of ${end.spreadSeconds} s; the last row was there after ${Math.round(end.seconds)} s.`,
]

const bar = (label: string, value: number, own = true): Bar => ({ label, value, note: '', own })
const times3 = ({ p50Ms, p99Ms }: Quantiles): Bar[] => [bar('half of them', p50Ms), bar('99 of 100', p99Ms)]

const panelsOf = (results: TaskResults): Panel[] => {
  const { open, end } = results
  const engines = new Set(['postgres', 'nats', 'clickhouse'])
  const roles = (figureOf: (role: string) => number): Bar[] =>
    ROLES.map(([role, title]) => bar(title, figureOf(role), !engines.has(role)))
  return [
    { title: 'CPU of one look', unit: 'us', aim: null, bars: roles((role) => perLookUs(results, role)) },
    {
      title: 'Memory with all open',
      unit: 'MiB',
      aim: null,
      bars: roles((role) => open.residentMiBByRole[role] ?? 0),
    },
    { title: 'A look comes late by', unit: 'ms', aim: null, bars: times3(open.lateness) },
    {
      title: 'From the end to the row',
      unit: 'ms',
      aim: null,
      bars: [
        ...times3(end.endToRow),
        ...times3(end.seenToRow).map((one) => ({ ...one, label: `${one.label}, since the look` })),
      ],
    },
  ]
}

const chartOf = (results: TaskResults): Chart => ({
  title: `${results.tasks.toLocaleString('en-US')} open tasks`,
  subtitle: [
    chartLine(results),
    'What it takes to look at them until they end. A cut bar is longer than drawn.',
  ],
  panels: panelsOf(results),
})

export const reportOf = (results: TaskResults): Report => ({
  title: 'What open tasks cost',
  chart: chartOf(results),
  chartText: 'CPU, memory and time of open tasks',
  run: runLines(results, runOf(results)),
  tables: [timesTable(results), costTable(results)],
  remarks: remarks(results),
  failures: results.failures,
  method: METHOD,
})
