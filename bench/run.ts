import { join } from 'node:path'
import { makeCertificate } from './harness/certificate.ts'
import { type Cores, chooseCores, endAll, pin } from './harness/children.ts'
import { startCoreLatency } from './harness/core-latency.ts'
import { ROOT } from './harness/machine.ts'
import { openFilesLimit } from './harness/proc.ts'
import { type Control, interruptible, runProgram, sayOnStderr, withFacts } from './harness/program.ts'
import { enterWorkFolder } from './harness/work-folder.ts'
import { LoadGenerator } from './load/generator.ts'
import { chooser, type Options, parseOptions, usage } from './options.ts'
import { printReport } from './report/calls/report.ts'
import type { Results } from './report/calls/results.ts'
import { publish } from './report/report.ts'
import { Runner } from './runner.ts'
import { ON_REQUEST, subjects } from './subjects/index.ts'
import { startUpstream } from './upstream/start.ts'
import { workloads } from './workloads/index.ts'
import { heldPace, pacedPace } from './workloads/streams.ts'
import { type Bench, FULL, QUICK, type Size } from './workloads/workload.ts'

/**
 * The bench of calls: what a call through Tollgate costs, compared with nginx, bare proxies and another gateway, in one
 * run on one machine.
 *
 * The subjects run on one core. The upstream (a provider that answers at once), the load generator (raw sockets) and this
 * process share another; Tollgate's engines run there or on a third one where only the gateway process is measured. Every
 * wait has a limit, and no process outlives the run. CPU comes from /proc. The report is report/calls/report.ts, which also
 * describes the method.
 */

const CACHE = join(ROOT, 'node_modules/.cache/tollgate-bench')
const BURST = { chunks: 100, perSecond: 0 }
/** Short streams whose second chunk comes well after the first. */
const BRIEF = { chunks: 5, perSecond: 50 }
/** A proxy has two sockets per stream, and programs need some more files. */
const SPARE_FILES = 1_000

/** Returns the size with no more streams than the limit of open files allows a proxy. */
const fitToMachine = (size: Size, openFiles: number): Size => {
  const most = Math.floor((openFiles - SPARE_FILES) / 2)
  if (most >= size.held.streams) return size
  sayOnStderr(
    `the limit of ${openFiles} open files allows ${most} open streams instead of ${size.held.streams}`,
  )
  return { ...size, held: { ...size.held, streams: most } }
}

const measure = async (options: Options, folder: string, cores: Cores | null, { checkpoint }: Control) => {
  const openFiles = openFilesLimit()
  const size = fitToMachine(options.quick ? QUICK : FULL, openFiles)
  const tls = makeCertificate(folder)
  if (!tls) sayOnStderr('no openssl on the PATH: skipping the rows with TLS')
  const paces = {
    burst: BURST,
    brief: BRIEF,
    paced: pacedPace(size),
    held: heldPace(size),
  }
  const upstream = await startUpstream({ ...paces, tls, port: options.port }, cores?.load ?? null)
  if (options.peers.length > 0) sayOnStderr(`the bench upstream: http://127.0.0.1:${upstream.port}/v1`)
  const load = await LoadGenerator.start(cores?.load ?? null)
  const coreLatency = cores ? await startCoreLatency(cores) : async () => null
  const bench: Bench = { size, load, paces, coreLatency }
  const all = [...options.peers, ...subjects]
  const isSubject = chooser(
    all.map(({ name }) => name),
    options,
    ON_REQUEST,
  )
  const isWorkload = chooser(
    workloads.map(({ name }) => name),
    options,
  )
  const measured = await new Runner({
    subjects: all.filter(({ name }) => isSubject(name)),
    workloads: workloads.filter(({ name }) => isWorkload(name)),
    stage: {
      upstream,
      certFile: tls?.certFile ?? null,
      cache: CACHE,
      core: cores?.subject ?? null,
      enginesCore: cores?.engines ?? null,
      openFiles,
    },
    folder,
    bench,
    say: sayOnStderr,
    checkpoint,
  }).run()
  return { size: size.name, rounds: size.rounds, pinned: cores !== null, ...measured }
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const work = await enterWorkFolder()
    try {
      const cores = chooseCores()
      if (cores) pin(process.pid, cores.load)
      else sayOnStderr('not pinned to cores, which needs two cores and taskset: the figures are less exact')
      const { quick, only, skip, out, peers } = options
      const results: Results = await withFacts(sayOnStderr, () =>
        measure(options, work.folder, cores, control),
      )
      const isFull = !quick && only === null && skip.length === 0
      const isCompared = peers.length > 0 || results.subjects.some(({ name }) => ON_REQUEST.includes(name))
      const names = isCompared ? (['comparison', 'partial'] as const) : (['latest', 'partial'] as const)
      await publish(results, printReport(results), { names, isFull, out }, sayOnStderr)
      return results.rows.some(({ failed }) => failed !== null) ? 1 : 0
    } finally {
      await endAll()
      work.leave()
    }
  })

const subjectNames = subjects.map(({ name }) => name)
const workloadNames = workloads.map(({ name }) => name)
await runProgram(
  (args) => parseOptions(args, [...subjectNames, ...workloadNames]),
  () => usage(subjectNames, workloadNames),
  run,
)
