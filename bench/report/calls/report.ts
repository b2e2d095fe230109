import { type Placement, SHARED_CACHE_BELOW_NS } from '../../harness/core-latency.ts'
import { SAMPLE_SECONDS } from '../../workloads/calls.ts'
import { type Report, runLines } from '../report.ts'
import { figure } from '../table.ts'
import { drawChart } from './panels.ts'
import { placementsIn, samplesIn } from './placement.ts'
import type { Results } from './results.ts'
import { printRemarks, printTables } from './tables.ts'

/** How the bench measures, in Markdown. */
const METHOD = `Each subject runs on one core. The load generator, the upstream and the bench share another. Tollgate's settler and
engines run on a third core, or on the load generator's where the machine has two; where memory or a settled call is
measured, they run on the gateway's. CPU is what Linux counts for the processes of a subject
(\`/proc/PID/task/*/schedstat\`), not elapsed time. Where "core use" is well below 100, the load generator was the
limit. The fewer calls arrive together, the more one of them costs, because all that one turn of the event loop
handles share its cost: "at 1,000/s" has every subject at one rate.

Rounds of the subjects alternate, and each takes three samples; one of CPU has as many calls as fill ${SAMPLE_SECONDS} s. A
figure is the median of all samples. Ratios and added latencies are computed within a round first, so that a slow phase
of the machine affects both sides. A sample ends when the subject is idle again, so it includes deferred work. The bench
checks every answer: status, length or number of chunks, \`[DONE]\`; of a gateway that rewrites answers, their text. One
wrong answer fails the row.

The placement of the cores matters as much as the program. The host of a virtual machine moves its cores, and a subject
and its load share the kernel's sockets: without a common cache, the same kernel code takes two to three times the
cycles. The bench therefore measures the round trip of a word between the two cores before and after each sample of CPU
or latency. Below ${SHARED_CACHE_BELOW_NS} ns the cores share a cache. Each placement has its own figures. A sample during which the
cores moved counts for neither. A figure needs three samples; a workload repeats up to twice as often until
all its subjects have them in one placement.

- **Small call**: 1 KB request, 600 byte response, 64 keep-alive connections, each sending when its last call ended.
  *Of 100 KB*: the same response to a conversation of a hundred turns.
- **Calm**: 50 small calls and 40 streams a second, and 20 paced streams, for gateways that the rates of the other rows
  overload. A subject that takes less than four fifths of a rate has no latency at it.
- **At rest**: ten seconds without a call, of all processes and engines together. Memory is the proportional share
  (\`Pss\`), so what processes share counts once. Started in an empty folder, on the same one core.
- **Burst**: streams of 100 chunks that the upstream writes at once, 8 at a time.
- **Paced**: hundreds of streams at 10 chunks a second each, evenly spread; a window in which all are open.
- **Latency** at 400 calls a second, **first byte** of streams at 100 a second, for four seconds each round. *Added* is the
  difference to the same call straight to the upstream. On a machine with two cores the engines keep the load generator and
  the upstream waiting, and that counts as latency. *With engines stopped* is a second sample, during which PostgreSQL,
  ClickHouse, the settler and the task worker do not run: the gateway admits, meters, writes its journal and publishes to
  NATS as before, and is notified of no bookings.
- **Open streams**: thousands at one chunk a second in a new process; growth of its resident memory.
- **Settled call**: small calls until the wallet shows all of them, CPU of every process of the service.
- **Bare parts**: a proxy of uWebSockets.js and Tollgate's upstream client, and nothing else. No gateway of these parts
  can cost less.
- **x nginx** is a ratio for comparison, not an aim.`

const lines = (results: Results): string[] => {
  const { subjects, size, rounds, seconds, pinned } = results
  const versions = subjects
    .filter(({ version }) => version !== '')
    .map(({ name, version }) => `; ${name} ${version}`)
    .join('')
  const pinning = pinned ? '' : ', **not pinned to cores**'
  const run = `${size} run: ${rounds} rounds in ${Math.round(seconds)} s${pinning}`
  return [
    ...runLines(results, run, versions),
    ...placementsIn(results.rows).map((placement) => placementLine(results, placement)),
  ]
}

const placementLine = (results: Results, placement: Placement): string => {
  const { count, roundTripNs } = samplesIn(results, placement)
  return `${count} samples with ${placement}: ${figure(roundTripNs)} ns for a round trip between the cores`
}

export const printReport = (results: Results): Report => ({
  title: 'What the gateway costs',
  chart: drawChart(results),
  chartText: 'CPU, time and memory of each subject',
  run: lines(results),
  tables: printTables(results),
  remarks: printRemarks(results),
  failures: [],
  method: METHOD,
})
