import type { Bar, Chart, Panel } from '../chart.ts'
import { chartLine } from '../report.ts'
import { figure } from '../table.ts'
import { inEachPlace } from './placement.ts'
import { addedTo, medianOf, type Results, YARDSTICK } from './results.ts'

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

const added = (results: Results, title: string, workload: string): Panel[] =>
  inEachPlace(results, (found, where) => ({
    title: `${title}${where}`,
    unit: 'µs, median (p99)',
    bars: bars(
      found,
      (subject) => (subject === 'direct' ? null : addedTo(found, workload, subject, 'direct', 'p50Us')),
      (subject) => `(${figure(addedTo(found, workload, subject, 'direct', 'p99Us'))})`,
    ),
    aim: null,
  }))

/** CPU of the gateway process, a panel for each place of the cores; the aim is so many times what nginx takes. */
const cost = (
  results: Results,
  title: string,
  workload: string,
  metric: string,
  timesNginx: number | null,
): Panel[] =>
  inEachPlace(results, (found, where) => {
    const nginx = medianOf(found, workload, YARDSTICK, metric)
    return {
      title: `${title}${where}`,
      unit: 'µs of CPU',
      bars: bars(found, median(found, workload, metric)),
      aim: nginx === null || timesNginx === null ? null : nginx * timesNginx,
    }
  })

const panelsOf = (results: Results): Panel[] => {
  const call = 'cpuPerCallUs'
  const chunk = 'cpuPerChunkUs'
  return [
    ...cost(results, 'A small call', 'small', call, 2),
    ...cost(results, 'A chunk of a paced stream', 'paced', chunk, 1),
    ...cost(results, 'A small call, TLS upstream', 'small-tls', call, 2),
    ...cost(results, 'A paced chunk, TLS upstream', 'paced-tls', chunk, 1),
    ...cost(results, 'A chunk of a burst', 'burst', chunk, null),
    ...inEachPlace(results, (found, where) => ({
      title: `Small calls on one core${where}`,
      unit: 'a second',
      bars: bars(found, (subject) =>
        subject === 'direct' ? null : medianOf(found, 'small', subject, 'callsPerSecond'),
      ),
      aim: null,
    })),
    ...added(results, 'Added latency', 'latency'),
    ...added(results, 'Added time to first byte', 'first-byte'),
    {
      title: 'Memory of an open stream',
      unit: 'KB',
      bars: bars(results, median(results, 'memory', 'kbPerStream')),
      aim: 30,
    },
    {
      title: 'A settled call, all processes and engines',
      unit: 'µs of CPU',
      bars: bars(results, median(results, 'settled', call)),
      aim: 150,
    },
  ].filter((panel) => panel.bars.length > 0)
}

export const chartOf = (results: Results): Chart => ({
  title: 'What a call through Tollgate costs',
  subtitle: [
    `${chartLine(results)} · Node.js ${results.node} · ${results.size} run`,
    'CPU of the gateway process alone, one core, unless it says otherwise. Dashed: the aim. A cut bar is longer than drawn.',
  ],
  panels: panelsOf(results),
})
