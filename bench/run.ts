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
import { reportOf } from './report/calls/report.ts'
import type { Results } from './report/calls/results.ts'
import { publish } from './report/report.ts'
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
 * that answers at once), the load generator (raw sockets, hand-written client) and this process share another, with
 * what stands behind a gateway where its CPU alone is measured. All counts are fixed and every wait has a limit. CPU
 * is read from /proc for the subject's own processes before and after each round; rounds are interleaved; a figure is
 * the median of its rounds. Report: report/calls/report.ts.
 */

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

const measure = async (options: Options, folder: string, cores: Cores | null, { checkpoint }: Control) => {
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
  const upstream = await startUpstream({ ...paces, tls }, cores?.load ?? null)
  const load = await LoadGenerator.start(cores?.load ?? null)
  const coreLatency = cores ? await startCoreLatency(cores) : async () => null
  const bench: Bench = { size, load, paces, coreLatency }
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
      else sayOnStderr('not pinned: needs two cores and taskset; the figures are rougher')
      const { quick, only, skip, out } = options
      const results: Results = await withFacts(sayOnStderr, () =>
        measure(options, work.folder, cores, control),
      )
      const isFull = !quick && only === null && skip.length === 0
      await publish(results, reportOf(results), { names: ['latest', 'partial'], isFull, out }, sayOnStderr)
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
