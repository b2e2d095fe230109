import { FAR_FROM_NS, type Place } from '../../harness/core-latency.ts'
import { type Report, runLines } from '../report.ts'
import { figure } from '../table.ts'
import { chartOf } from './panels.ts'
import { looksIn, placesIn } from './placement.ts'
import type { Results } from './results.ts'
import { remarksOf, tablesOf } from './tables.ts'

/** How the figures came about; the same words in every report. */
const METHOD = `Every subject runs on one core of its own; the load generator, the upstream and the bench share the
other. Where the CPU of the gateway alone is measured, Tollgate's settler and engines are on that other core; where
time is measured, memory, or all of a settled call, they are on the gateway's: there nothing may come between the load
and its clock. CPU is what Linux counts for the subject's own processes (\`/proc/PID/task/*/schedstat\`), not time on
the clock. calls/s is what came of it with that generator, and where "core busy" is well below 100 the generator was
the limit. A call costs more the fewer there are, because what a turn of the event loop costs is shared by all that it
brings: "evenly" has every subject at one rate. Rounds are interleaved, subject after subject, and each looks three
times at the CPU of a gateway; a figure is the median of all looks; ratios and added latencies are taken within a
round first, so that what slowed the machine for a while weighs on both. The count ends when the subject is at rest
again, so that work put off is counted too. Every answer is checked: status, length or number of chunks, \`[DONE]\`. A
single wrong one fails the row.

Where the cores are decides as much as the program does. The host of a virtual machine moves them as it likes, and
what a subject and its load share in the kernel's sockets goes from core to core: two that do not share a cache need
two to three times the cycles for the same instructions of the kernel, and none more for those of the program. So
before and after each look at CPU or time (not at memory, nor at settled calls) a word is sent from one core to the
other and back. Below ${FAR_FROM_NS} ns the cores are called near, from there on far; figures of the two stand apart,
and a look during which they were moved counts for neither. Fewer than three are no figure; a workload is repeated up
to twice as often until one place has them all.

- **Small call**: 1 KB request, 600 byte response, 64 keep-alive connections, each sending when its last call ended;
  *evenly*: 1,000 calls a second. *Of 100 KB*: the same answer to a conversation of a hundred turns.
- **Burst**: streams of 100 chunks that the upstream writes at once, 8 at a time.
- **Paced**: hundreds of streams at 10 chunks a second each, evenly spread; a window in which all are open.
- **Latency** at 400 calls a second, **first byte** of streams at 100 a second; *added* is against the same call
  straight to the upstream.
- **Open streams**: thousands at one chunk a second in one fresh process; growth of its resident memory.
- **Settled call**: small calls until the wallet shows all of them, CPU of every process of the service.
- **Bare**, in the budget: the proxy of uWebSockets.js and Tollgate's own client, with nothing between the two. No
  gateway of these parts can be below it.`

const lines = (results: Results): string[] => {
  const { subjects, size, rounds, seconds, pinned } = results
  const versions = subjects
    .filter(({ version }) => version !== '')
    .map(({ name, version }) => `; ${name} ${version}`)
    .join('')
  const place = pinned ? '' : ', **not pinned to cores**'
  const run = `${size} run: ${rounds} rounds in ${Math.round(seconds)} s${place}`
  return [
    ...runLines(results, run, versions),
    ...placesIn(results.rows).map((place) => placeLine(results, place)),
  ]
}

const placeLine = (results: Results, place: Place): string => {
  const { count, roundTripNs } = looksIn(results, place)
  return `${count} looks with the cores ${place}: ${figure(roundTripNs)} ns there and back`
}

export const reportOf = (results: Results): Report => ({
  title: 'What the gateway costs',
  chart: chartOf(results),
  chartText: 'CPU, time and memory of each subject',
  run: lines(results),
  tables: tablesOf(results),
  remarks: remarksOf(results),
  failures: [],
  method: METHOD,
})
