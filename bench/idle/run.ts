/**
 * The bench of the idle service, as `npm install && npm start` runs it: memory and CPU of each process, the time of a start,
 * and the size of the installation.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readRunning } from '../../src/embedded/data-dir.ts'
import { type Child, endAll, startChild } from '../harness/children.ts'
import { FLAG, givenOptions, TEXT, wholeNumber } from '../harness/command-line.ts'
import { diskBytes } from '../harness/disk.ts'
import { ROOT } from '../harness/machine.ts'
import { commandLine, cpuNs, processTree, proportionalBytes } from '../harness/proc.ts'
import { interruptible, type RunFacts, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { SERVE, stripTypes } from '../harness/service.ts'
import { untilReady } from '../harness/wait.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { runLines } from '../report/report.ts'

const DEFAULT_SECONDS = 60
/** By then the first rounds of background work have run, and their garbage is collected. */
const SETTLE_MS = 60_000
const REPORT = join(ROOT, 'bench/results/idle.md')
const MS_PER_SECOND = 1000
const BYTES_PER_MIB = 2 ** 20
const NS_PER_SECOND = 1e9

interface Start {
  readonly child: Child
  readonly seconds: number
  /** Of all processes. Unlike the seconds, it hardly depends on other work on the machine. */
  readonly cpuSeconds: number
}

async function start(folder: string): Promise<Start> {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir, { recursive: true })
  const env = { TOLLGATE_DATA_DIR: dataDir, TOLLGATE_PORT: '0' }
  const startedAt = performance.now()
  const child = await startChild('tollgate', process.execPath, SERVE, {
    core: null,
    cwd: folder,
    env,
  })
  await untilReady(child, () => (readRunning(dataDir)?.pid === child.pid ? true : null))
  const seconds = (performance.now() - startedAt) / MS_PER_SECOND
  return { child, seconds, cpuSeconds: cpuNs(processTree(child.pid)) / NS_PER_SECOND }
}

/** Returns the title of a process that sets one, such as `tollgate: gateway 0`, else its script or program. */
function nameProcess(pid: number): string {
  const line = commandLine(pid)
  if (line.startsWith('tollgate: ') || line.startsWith('postgres: ')) return line
  const words = line.split(' ').filter((word) => !word.startsWith('-'))
  const script = words.find((word) => /\.[jt]s$/.test(word))
  return script === undefined ? basename(words[0] ?? '') : script.slice(-40)
}

const measureMib = (path: string): string => (diskBytes(path) / BYTES_PER_MIB).toFixed(0)

interface Row {
  readonly name: string
  readonly mib: number
  readonly corePercent: number
}

/** Measures every process of the service while nothing happens. */
async function measureRest(root: number, seconds: number): Promise<Row[]> {
  const before = new Map(processTree(root).map((pid) => [pid, cpuNs([pid])]))
  await delay(seconds * MS_PER_SECOND)
  return processTree(root).map((pid) => ({
    name: nameProcess(pid),
    mib: proportionalBytes([pid]) / BYTES_PER_MIB,
    corePercent: ((cpuNs([pid]) - (before.get(pid) ?? 0)) / (seconds * NS_PER_SECOND)) * 100,
  }))
}

interface Results {
  readonly rows: readonly Row[]
  readonly first: Start
  readonly again: Start
}

const printStart = ({ seconds, cpuSeconds }: Start): string =>
  `ready after ${seconds.toFixed(1)} s, of which ${cpuSeconds.toFixed(1)} s of CPU`

function printResults(results: Results & RunFacts, seconds: number): string {
  const { rows, first, again } = results
  const sum = (of: (row: Row) => number) => rows.reduce((total, row) => total + of(row), 0)
  const total = { name: 'all', mib: sum(({ mib }) => mib), corePercent: sum((row) => row.corePercent) }
  const lines = [...rows.toSorted((a, b) => b.mib - a.mib), total].map(
    ({ name, mib, corePercent }) =>
      `| ${name.slice(0, 60).padEnd(60)} | ${mib.toFixed(1).padStart(8)} | ${corePercent.toFixed(2).padStart(6)} |`,
  )
  return `# The idle service

${runLines(results, `${seconds} s at rest`)
  .map((line) => `- ${line}`)
  .join('\n')}

| ${'process'.padEnd(60)} | ${'MiB, PSS'.padStart(8)} | core % |
|${'-'.repeat(62)}|---------:|-------:|
${lines.join('\n')}

- first start: ${printStart(first)}
- another start: ${printStart(again)}
- installed: ${measureMib(ROOT)} MiB, of which node_modules ${measureMib(join(ROOT, 'node_modules'))} MiB, without caches
`
}

interface Options {
  readonly seconds: number
  readonly help: boolean
}

const run = ({ seconds }: Options): Promise<number> =>
  interruptible(sayOnStderr, async () => {
    stripTypes()
    const work = await enterWorkFolder()
    try {
      const results = await withFacts(sayOnStderr, async () => {
        const first = await start(work.folder)
        await endAll()
        const again = await start(work.folder)
        await delay(SETTLE_MS)
        return { rows: await measureRest(again.child.pid, seconds), first, again }
      })
      const report = printResults(results, seconds)
      process.stdout.write(report)
      writeFileSync(REPORT, report)
      return 0
    } finally {
      await endAll()
      work.leave()
    }
  })

const OPTIONS = { seconds: TEXT, help: FLAG }
const USAGE = `npm run bench:idle -- [options]

  --seconds N    how long it measures; ${DEFAULT_SECONDS} by default
  --help         this text
`

await runProgram(
  (args): Options => {
    const { seconds = String(DEFAULT_SECONDS), help = false } = givenOptions(args, OPTIONS)
    return { seconds: wholeNumber('seconds', seconds, 1, 3600), help }
  },
  () => USAGE,
  run,
)
