/** The bench of tasks. */
import t from 'tap'
import { toSvg } from '../../bench/report/chart.ts'
import { toPage, toTerminal } from '../../bench/report/report.ts'
import { FULL_TASKS, parseOptions } from '../../bench/tasks/options.ts'
import { printReport } from '../../bench/tasks/report.ts'
import type { TaskResults } from '../../bench/tasks/results.ts'

t.test('options', async (t) => {
  t.test('without options it is a small run', async (t) => {
    t.match(parseOptions([]), { tasks: 1_000, seed: 1, out: null, help: false })
  })

  t.test('a full run waits until polls have reached their longest interval', async (t) => {
    const { tasks, ageMs } = parseOptions(['--tasks', '10k'])
    t.equal(tasks, FULL_TASKS)
    t.equal(ageMs, 100_000)
    t.equal(parseOptions(['--tasks', '2_500']).tasks, 2_500)
  })

  t.test('wrong usage is an error', async (t) => {
    for (const value of ['0', '1.5', '60k', 'many'])
      t.throws(() => parseOptions(['--tasks', value]), { message: value })
    t.throws(() => parseOptions(['--seed', 'x']), /--seed/)
    t.throws(() => parseOptions(['--fast']), /--fast/)
  })
})

t.test('report', async (t) => {
  const times = { p50Ms: 12, p99Ms: 340, maxMs: 900 }
  const RESULTS: TaskResults = {
    date: '2026-01-02',
    isFull: false,
    tasks: 1_000,
    seed: 1,
    seconds: 80,
    busyBeforePercent: 2,
    machine: { cpu: 'a processor', cores: 2, memoryGiB: 8, system: 'Linux' },
    tollgate: '0.1.0',
    node: '22.0.0',
    idle: { seconds: 5, cpuMsByRole: { settler: 50, postgres: 10 } },
    submit: { seconds: 10, cpuMsByRole: { settler: 4_000, gateway: 5_000 } },
    open: {
      seconds: 10,
      cpuMsByRole: { settler: 1_100, postgres: 220 },
      ageSeconds: 15,
      polls: 2_000,
      lateness: times,
      residentMiBByRole: { settler: 150 },
      tasksMiBBefore: 100,
    },
    end: {
      seconds: 22,
      cpuMsByRole: { settler: 6_000 },
      spreadSeconds: 20,
      endToRow: times,
      seenToRow: times,
    },
    failures: [],
  }

  t.test('the cost of a poll excludes idle use', async (t) => {
    const text = toTerminal(printReport(RESULTS))
    t.match(text, /Settler and task worker +500 +1\.00 +11\.0 +4\.00 +6\.00 +150/)
    t.match(text, /PostgreSQL +100 /)
    t.match(text, /All +600 /)
    t.match(text, ': 200 a second')
    t.match(text, '50.0 MiB')
  })

  t.test('what does not hold is said', async (t) => {
    const failed = { ...RESULTS, failures: ['3 holds are open'] }
    t.match(toTerminal(printReport(failed)), 'FAILED: 3 holds are open')
    t.match(toPage(printReport(failed), 'tasks.svg'), '- **Failed**: 3 holds are open')
    t.notMatch(toPage(printReport(RESULTS), 'tasks.svg'), '**Failed**')
  })

  t.test('report and chart name the machine and every process', async (t) => {
    const report = toPage(printReport(RESULTS), 'tasks.svg')
    t.match(report, '![CPU, memory and time of open tasks](tasks.svg)')
    for (const picture of [report, await toSvg(printReport(RESULTS).chart)])
      for (const name of ['a processor', 'Settler and task worker', 'NATS']) t.match(picture, name)
  })
})
