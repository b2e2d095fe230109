import type { Bar, Chart, Panel } from '../chart.ts'
import { chartLine } from '../report.ts'
import { figure } from '../table.ts'
import { BARE, CALL_LIMIT, CHUNK_LIMIT, SETTLED_LIMIT_US, STREAM_LIMIT_KB } from './aims.ts'
import { inEachPlacement } from './placement.ts'
import { addedTo, computeMedian, type Results } from './results.ts'

/** The chart of a run: a panel for each workload, a bar for each subject. */

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
    computeMedian(results, workload, subject, metric)

const added = (results: Results, title: string, workload: string): Panel[] =>
  inEachPlacement(results, (part, where) => ({
    title: `${title}${where}`,
    unit: 'µs, median (p99)',
    bars: bars(
      part,
      (subject) => (subject === 'direct' ? null : addedTo(part, workload, subject, 'direct', 'p50Us')),
      (subject) => `(${figure(addedTo(part, workload, subject, 'direct', 'p99Us'))})`,
    ),
    aim: null,
  }))

/** CPU of the gateway process, a panel for each placement. The aim is a multiple of the bare parts' figure. */
const cost = (
  results: Results,
  title: string,
  workload: string,
  metric: string,
  timesBare: number | null,
): Panel[] =>
  inEachPlacement(results, (part, where) => {
    const bare = computeMedian(part, workload, BARE, metric)
    return {
      title: `${title}${where}`,
      unit: 'µs of CPU',
      bars: bars(part, median(part, workload, metric)),
      aim: bare === null || timesBare === null ? null : bare * timesBare,
    }
  })

const drawPanels = (results: Results): Panel[] => {
  const call = 'cpuPerCallUs'
  const chunk = 'cpuPerChunkUs'
  return [
    ...cost(results, 'Small call', 'small', call, CALL_LIMIT),
    ...cost(results, 'Chunk of a paced stream', 'paced', chunk, CHUNK_LIMIT),
    ...cost(results, 'Small call, TLS upstream', 'small-tls', call, null),
    ...cost(results, 'Paced chunk, TLS upstream', 'paced-tls', chunk, null),
    ...cost(results, 'Chunk of a burst', 'burst', chunk, null),
    ...inEachPlacement(results, (part, where) => ({
      title: `Small calls on one core${where}`,
      unit: 'a second',
      bars: bars(part, (subject) =>
        subject === 'direct' ? null : computeMedian(part, 'small', subject, 'callsPerSecond'),
      ),
      aim: null,
    })),
    ...added(results, 'Added latency', 'latency'),
    ...added(results, 'Added time to first byte', 'first-byte'),
    {
      title: 'Memory of an open stream',
      unit: 'KB',
      bars: bars(results, median(results, 'memory', 'kbPerStream')),
      aim: STREAM_LIMIT_KB,
    },
    {
      title: 'Settled call, all processes and engines',
      unit: 'µs of CPU',
      bars: bars(results, median(results, 'settled', call)),
      aim: SETTLED_LIMIT_US,
    },
  ].filter((panel) => panel.bars.length > 0)
}

export const drawChart = (results: Results): Chart => ({
  title: 'What a call through Tollgate costs',
  subtitle: [
    `${chartLine(results)} · Node.js ${results.node} · ${results.size} run`,
    'CPU of the gateway process on one core, unless a title says otherwise. Dashed: the aim. »: longer than drawn.',
  ],
  panels: drawPanels(results),
})
