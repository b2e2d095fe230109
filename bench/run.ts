import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from './harness/certificate.ts'
import { chooseCores, endAll, pinSelf } from './harness/children.ts'
import { describeCheckout, describeMachine } from './harness/machine.ts'
import { openFilesLimit } from './harness/proc.ts'
import {
  busyBefore,
  type Control,
  interruptible,
  runProgram,
  sayOnStderr,
  writeResults,
} from './harness/program.ts'
import { LoadGenerator } from './load/generator.ts'
import { chooser, type Options, parseOptions, usage } from './options.ts'
import { chartOf } from './report/chart.ts'
import { reportOf, summaryOf } from './report/markdown.ts'
import type { Results } from './report/results.ts'
import { toText } from './report/table.ts'
import { remarksOf, tablesOf } from './report/tables.ts'
import { Runner } from './runner.ts'
import { subjects } from './subjects/index.ts'
import { startUpstream } from './upstream/start.ts'
import { workloads } from './workloads/index.ts'
import { heldPace, pacedPace } from './workloads/streams.ts'
import { type Bench, FULL, QUICK, type Size } from './workloads/workload.ts'

/**
 * The bench: what a call through Tollgate costs, beside what nginx, a bare proxy and another gateway take for the
 * same call, in one run on one machine.
 *
 * Five kinds of process, none of which outlives the run. The subjects run on one core. The upstream (a provider
 * that answers at once), the load generator (raw sockets, hand-written client) and this process share another. All
 * counts are fixed and every wait has a limit. CPU is read from /proc for the subject's own processes before and
 * after each round; rounds are interleaved; a figure is the median of its rounds. Report: report/markdown.ts.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const RESULTS = fileURLToPath(new URL('results', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/tollgate-bench')
const BURST = { chunks: 100, perSecond: 0 }
/** Short streams whose second chunk comes well after the first has been seen. */
const BRIEF = { chunks: 5, perSecond: 50 }
/** A proxy has two sockets a stream; programs want some files besides. */
const SPARE_FILES = 1_000

/** The wanted size, with no more streams than the limit of open files lets a proxy hold. */
const fitToMachine = (size: Size, openFiles: number): Size => {
  const most = Math.floor((openFiles - SPARE_FILES) / 2)
  if (most >= size.held.streams) return size
  sayOnStderr(
    `the limit of ${openFiles} open files allows ${most} open streams instead of ${size.held.streams}`,
  )
  return { ...size, held: { ...size.held, streams: most } }
}

const measure = async (options: Options, folder: string, { checkpoint }: Control): Promise<Results> => {
  const cores = chooseCores()
  if (cores) pinSelf(cores.rest)
  else sayOnStderr('not pinned: needs two cores and taskset; the figures are rougher')
  const busyBeforePercent = await busyBefore(sayOnStderr)
  const openFiles = openFilesLimit()
  const size = fitToMachine(options.quick ? QUICK : FULL, openFiles)
  const tls = makeCertificate(folder)
  if (!tls) sayOnStderr('no openssl on the PATH: rows with TLS are skipped')
  const paces = {
    burst: BURST,
    brief: BRIEF,
    paced: pacedPace(size),
    held: heldPace(size),
  }
  const upstream = await startUpstream({ ...paces, tls }, cores?.rest ?? null)
  const load = await LoadGenerator.start(cores?.rest ?? null)
  const bench: Bench = { size, load, paces }
  const startedAt = performance.now()
  const isSubject = chooser(
    subjects.map(({ name }) => name),
    options,
  )
  const isWorkload = chooser(
    workloads.map(({ name }) => name),
    options,
  )
  const measured = await new Runner({
    subjects: subjects.filter(({ name }) => isSubject(name)),
    workloads: workloads.filter(({ name }) => isWorkload(name)),
    stage: {
      upstream,
      certFile: tls?.certFile ?? null,
      cache: CACHE,
      core: cores?.subject ?? null,
      openFiles,
    },
    folder,
    bench,
    say: sayOnStderr,
    checkpoint,
  }).run()
  return {
    date: new Date().toISOString().slice(0, 10),
    size: size.name,
    rounds: size.rounds,
    pinned: cores !== null,
    busyBeforePercent,
    seconds: (performance.now() - startedAt) / 1000,
    machine: describeMachine(),
    node: process.versions.node,
    tollgate: describeCheckout(ROOT),
    ...measured,
  }
}

/** A partial or quick run never takes the place of the full one. */
const write = (results: Results, { quick, only, skip, out }: Options): void => {
  const isWhole = !quick && only === null && skip.length === 0
  const written = { results, chart: chartOf(results), report: (chart: string) => reportOf(results, chart) }
  writeResults(out ?? RESULTS, isWhole || out !== null ? 'latest' : 'partial', written, sayOnStderr)
}

const print = (results: Results): void => {
  const tables = tablesOf(results).map(toText)
  const parts = [summaryOf(results), ...tables, remarksOf(results).join('\n')]
  process.stdout.write(`${parts.filter((part) => part !== '').join('\n\n')}\n`)
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
    chmodSync(folder, 0o711) // run as root, PostgreSQL is another user and has to pass through
    try {
      const results = await measure(options, folder, control)
      print(results)
      write(results, options)
      return results.rows.some(({ failed }) => failed !== null) ? 1 : 0
    } finally {
      await endAll()
      rmSync(folder, { recursive: true, force: true })
    }
  })

const subjectNames = subjects.map(({ name }) => name)
const workloadNames = workloads.map(({ name }) => name)
await runProgram(
  (args) => parseOptions(args, [...subjectNames, ...workloadNames]),
  () => usage(subjectNames, workloadNames),
  run,
)
