import { chartLine } from './report.ts'
import { addedTo, medianOf, type Results } from './results.ts'
import type { Bar, Panel, Picture } from './svg.ts'
import { figure } from './table.ts'

/** The picture of a run: one panel a question, one bar a subject. */

type Measure = (subject: string) => number | null

const OWN = 'tollgate'

const bars = (results: Results, value: Measure, note: (subject: string) => string = () => ''): Bar[] =>
  results.subjects.flatMap(({ name, title }) => {
    const measured = value(name)
    return measured === null
      ? []
      : [{ label: title, value: measured, note: note(name), own: name.startsWith(OWN) }]
  })

const median =
  (results: Results, workload: string, metric: string): Measure =>
  (subject) =>
    medianOf(results, workload, subject, metric)

const timesNginx = (results: Results, workload: string, metric: string, times: number): number | null => {
  const nginx = medianOf(results, workload, 'nginx', metric)
  return nginx === null ? null : nginx * times
}

const added = (results: Results, title: string, workload: string): Panel => ({
  title,
  unit: 'µs, median (99th percentile)',
  bars: bars(
    results,
    (subject) => (subject === 'direct' ? null : addedTo(results, workload, subject, 'direct', 'p50Us')),
    (subject) => `(${figure(addedTo(results, workload, subject, 'direct', 'p99Us'))})`,
  ),
  aim: null,
})

const cost = (
  results: Results,
  title: string,
  workload: string,
  metric: string,
  aim: number | null,
): Panel => ({
  title,
  unit: 'µs of CPU',
  bars: bars(results, median(results, workload, metric)),
  aim,
})

const panelsOf = (results: Results): Panel[] => {
  const aim = (workload: string, metric: string, times: number) =>
    timesNginx(results, workload, metric, times)
  const call = 'cpuPerCallUs'
  const chunk = 'cpuPerChunkUs'
  return [
    cost(results, 'A small call', 'small', call, aim('small', call, 2)),
    cost(results, 'A chunk of a paced stream', 'paced', chunk, aim('paced', chunk, 1)),
    cost(results, 'A small call, TLS to the upstream', 'small-tls', call, aim('small-tls', call, 2)),
    cost(results, 'A paced chunk, TLS to the upstream', 'paced-tls', chunk, aim('paced-tls', chunk, 1)),
    cost(results, 'A chunk of a burst', 'burst', chunk, null),
    {
      title: 'Small calls on one core',
      unit: 'a second',
      bars: bars(results, (subject) =>
        subject === 'direct' ? null : medianOf(results, 'small', subject, 'callsPerSecond'),
      ),
      aim: null,
    },
    added(results, 'Added latency', 'latency'),
    added(results, 'Added time to first byte', 'first-byte'),
    {
      title: 'Memory of an open stream',
      unit: 'KB',
      bars: bars(results, median(results, 'memory', 'kbPerStream')),
      aim: 30,
    },
    cost(results, 'A settled call, all processes and engines', 'settled', call, 150),
  ].filter((panel) => panel.bars.length > 0)
}

export const pictureOf = (results: Results): Picture => ({
  title: 'What a call through Tollgate costs',
  subtitle: [
    `${chartLine(results)} · Node.js ${results.node} · ${results.size} run`,
    'CPU of the gateway process alone, one core, unless it says otherwise. Dashed: the aim. A cut bar is longer than drawn.',
  ],
  panels: panelsOf(results),
})
