import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from './harness/certificate.ts'
import { chooseCores, endAll, killAll, pinSelf } from './harness/children.ts'
import { describeCheckout, describeMachine } from './harness/machine.ts'
import { busyPercentDuring, openFilesLimit } from './harness/proc.ts'
import { LoadGenerator } from './load/generator.ts'
import { chooser, type Options, parseOptions, UsageError, usage } from './options.ts'
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
/** Long enough to see a neighbour at work. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

/** Thrown when the run was told to stop. */
class Interrupted extends Error {}

const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

/** The wanted size, with no more streams than the limit of open files lets a proxy hold. */
const fitToMachine = (size: Size, openFiles: number): Size => {
  const most = Math.floor((openFiles - SPARE_FILES) / 2)
  if (most >= size.held.streams) return size
  say(`the limit of ${openFiles} open files allows ${most} open streams instead of ${size.held.streams}`)
  return { ...size, held: { ...size.held, streams: most } }
}

const measure = async (options: Options, folder: string, checkpoint: () => void): Promise<Results> => {
  const cores = chooseCores()
  if (cores) pinSelf(cores.rest)
  else say('not pinned: needs two cores and taskset; the figures are rougher')
  const busyBeforePercent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (busyBeforePercent > BUSY_PERCENT)
    say(`the machine is ${Math.round(busyBeforePercent)} % busy with other things: times will be wrong`)
  const openFiles = openFilesLimit()
  const size = fitToMachine(options.quick ? QUICK : FULL, openFiles)
  const tls = makeCertificate(folder)
  if (!tls) say('no openssl on the PATH: rows with TLS are skipped')
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
    say,
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
  const whole = !quick && only === null && skip.length === 0
  const folder = out ?? RESULTS
  const name = whole || out !== null ? 'latest' : 'partial'
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), chartOf(results))
  writeFileSync(join(folder, `${name}.md`), reportOf(results, `${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
}

const print = (results: Results): void => {
  const tables = tablesOf(results).map(toText)
  const parts = [summaryOf(results), ...tables, remarksOf(results).join('\n')]
  process.stdout.write(`${parts.filter((part) => part !== '').join('\n\n')}\n`)
}

const run = async (options: Options): Promise<number> => {
  let interrupted = false
  const checkpoint = (): void => {
    if (interrupted) throw new Interrupted()
  }
  const interrupt = (): void => {
    if (interrupted) process.exit(EXIT_INTERRUPTED) // asked twice: `exit` kills what is left
    interrupted = true
    say('stopping …')
    void endAll()
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  process.on('exit', killAll)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  chmodSync(folder, 0o711) // run as root, PostgreSQL is another user and has to pass through
  try {
    const results = await measure(options, folder, checkpoint)
    print(results)
    write(results, options)
    return results.rows.some(({ failed }) => failed !== null) ? 1 : 0
  } catch (error) {
    if (!interrupted) throw error
    return EXIT_INTERRUPTED
  } finally {
    await endAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

const main = async (): Promise<number> => {
  const subjectNames = subjects.map(({ name }) => name)
  const workloadNames = workloads.map(({ name }) => name)
  const options = parseOptions(process.argv.slice(2), [...subjectNames, ...workloadNames])
  if (!options.help) return run(options)
  process.stdout.write(usage(subjectNames, workloadNames))
  return 0
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`bench: ${error.message}\n`)
  return error instanceof UsageError ? EXIT_USAGE : 1
})
