/**
 * Runs the tests that are named, by file or folder; with `--all` every test; with `--unit` those of pure code; else all
 * that need neither the whole service nor a browser. `--with=FOLDER,FOLDER` adds those of folders. Prints one page; all
 * output goes to a file. A test file is a program that prints TAP; the files of most folders share a process. The
 * kernel ends it when this process ends, however that is, and so it ends the services that are lent to the tests
 * meanwhile.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { endWithUs } from '../../src/embedded/programs.ts'
import { findChromium } from './chromium-binary.ts'
import { FILE_COMMENT, TapPage } from './tap-page.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TESTS = 'test'
/** The settings of tap that apply to a run, whoever starts it. */
const { jobs, timeout }: { jobs: number; timeout: number } = parse(readFileSync(join(ROOT, '.taprc'), 'utf8'))
const TIME_LIMIT_SECONDS = Number(process.env.TAP_TIMEOUT ?? timeout)
/** A file that waits is ended by tap, and says where; one that computes without end hears of nothing. */
const KILLED_AFTER_MS = (TIME_LIMIT_SECONDS + 12) * 1000
const CACHE = join(ROOT, 'node_modules/.cache/tollgate')
const OUTPUTS = join(CACHE, 'test-output')
const OUTPUTS_KEPT_MS = 86_400_000
const BROWSER_TESTS = 'test/browser'
/** Of the whole service, from the outside, and those that measure for a minute. */
const LONG = [BROWSER_TESTS, 'test/chaos', 'test/end-to-end', 'test/specification', 'test/growth']
/** Of pure code: they start no engine. */
const UNIT = [
  'test/console.test.ts',
  'test/schemas.test.ts',
  'test/src/auth',
  'test/src/channels',
  'test/src/config',
  'test/src/core',
  'test/src/credentials.test.ts',
  'test/src/fetch.test.ts',
  'test/src/markdown',
  'test/src/mcp',
  'test/src/openapi.test.ts',
  'test/src/payments.test.ts',
  'test/src/protocols',
]
/** They take longest: each starts first, in its own process. */
const ALONE = [
  'test/pipelines/call-log/copy.test.ts',
  'test/src/cli/processes.test.ts',
  'test/pipelines/tasks/faults.test.ts',
  'test/pipelines/tasks/ends.test.ts',
  'test/pipelines/tasks/providers.test.ts',
  'test/pipelines/call-log/rebuild.test.ts',
  'test/pipelines/call-log/reading.test.ts',
  'test/src/protocols/round-trip.test.ts',
  'test/src/postgres/servers.test.ts',
  'test/src/postgres/connection.test.ts',
  'test/pipelines/notifications/events-outlive-kills.test.ts',
]
const FOLDER_LEVELS = 3
const ALL = '--all'
const UNIT_ONLY = '--unit'
const WITH = '--with='
const SEVERAL_FILES = join(ROOT, 'test/support/several-files.ts')
const CONSOLE_BUILD = join(ROOT, 'scripts/console-build.ts')
const STDERR_LINES = 20
/** Where nobody watches, a line now and then. */
const FILES_PER_LINE = 25

/** Returns the test files of a path: itself, or those below the folder. */
function listTests(path: string): string[] {
  if (!existsSync(path)) throw new Error(`${path}: there is no such file or folder`)
  if (!statSync(path).isDirectory()) return [path]
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(path, name))
}

const isIn = (folders: readonly string[], path: string): boolean =>
  folders.some((folder) => path.startsWith(`${folder}/`))

function listUsualTests(added: readonly string[]): string[] {
  return listTests(TESTS).filter((path) => isIn(added, path) || !isIn(LONG, path))
}

function chooseTests(words: readonly string[]): string[] {
  const unknown = words.find(
    (word) => /^-/.test(word) && ![ALL, UNIT_ONLY].includes(word) && !word.startsWith(WITH),
  )
  if (unknown !== undefined) throw new Error(`${unknown}: there is no such option`)
  const named = words.filter((word) => !word.startsWith('-'))
  if (named.length > 0) return named.flatMap(listTests)
  if (words.includes(ALL)) return listTests(TESTS)
  if (words.includes(UNIT_ONLY)) return UNIT.flatMap(listTests)
  const added = words
    .filter((word) => word.startsWith(WITH))
    .flatMap((word) => word.slice(WITH.length).split(','))
  for (const folder of added)
    if (!existsSync(folder)) throw new Error(`${WITH}${folder}: there is no such folder`)
  return listUsualTests(added)
}

/**
 * Has a browser at hand, and the console as its sources are: the time of a test is not for downloads, and pages of
 * yesterday show nothing.
 */
async function prepareBrowserTests(): Promise<void> {
  await findChromium()
  await once(spawn(process.execPath, [CONSOLE_BUILD], { stdio: 'inherit' }), 'exit')
}

/**
 * Returns the files by the process that runs them. Those below a folder such as `test/src/http` share one: loading what
 * they test takes as long as most of them. A process that runs many files starts early.
 */
function groupByProcess(files: readonly string[]): string[][] {
  const first = ALONE.filter((file) => files.includes(file)).map((file) => [file])
  const others = files.filter((file) => !ALONE.includes(file))
  const sharesProcess = (file: string) => isIn([TESTS], file) && !isIn(LONG, file)
  const findFolder = (file: string) => dirname(file).split('/', FOLDER_LEVELS).join('/')
  const groups = Map.groupBy(others, (file) => (sharesProcess(file) ? findFolder(file) : file))
  return [...first, ...[...groups.values()].sort((a, b) => b.length - a.length)]
}

/** Returns the lines that each file printed, of those that one process ran; none for a file that it did not come to. */
function splitByFile(files: readonly string[], lines: readonly string[]): [file: string, lines: string[]][] {
  if (files.length === 1) return [[files[0]!, [...lines]]]
  const starts = files.map((file) => lines.indexOf(`# ${FILE_COMMENT}${file}`))
  return files.map((file, index) => {
    const next = starts.slice(index + 1).find((start) => start >= 0)
    return [file, starts[index]! < 0 ? [] : lines.slice(starts[index], next)]
  })
}

/** Returns the lines of TAP that make a subtest of what a test file printed. */
const asSubtest = (file: string, lines: readonly string[], isFailure: boolean): string[] => [
  `# Subtest: ${file}`,
  ...lines.map((line) => `    ${line}`),
  `${isFailure ? 'not ok' : 'ok'} ${page.files + 1} - ${file}`,
]

/** A new file for all that tests write; those of other days go. */
function outputPath(): string {
  mkdirSync(OUTPUTS, { recursive: true })
  for (const name of readdirSync(OUTPUTS)) {
    const path = join(OUTPUTS, name)
    if (Date.now() - statSync(path).mtimeMs > OUTPUTS_KEPT_MS) rmSync(path, { force: true })
  }
  return join(OUTPUTS, `${process.pid}.tap`)
}

const words = process.argv.slice(2)
const files = [...new Set(chooseTests(words))]
if (files.some((path) => path.startsWith(BROWSER_TESTS))) await prepareBrowserTests()
// What lends services loads most of the program, which files that need none should not wait for.
const needsServices = files.some((path) => isIn(LONG, path))
const lender = needsServices ? await (await import('./lend-services.ts')).startLender() : null
const startedAt = performance.now()
const path = outputPath()
const output = createWriteStream(path)
const env = {
  ...process.env,
  ...lender?.env,
  NODE_COMPILE_CACHE: join(CACHE, 'compiled'),
  TAP_TIMEOUT: String(TIME_LIMIT_SECONDS),
}
const page = new TapPage()
const { isTTY } = process.stdout
const running = new Set<ChildProcess>()
const lastWords: string[] = []
let endedBy: NodeJS.Signals | null = null
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    endedBy = signal
    for (const child of running) child.kill(signal)
  })

async function runFiles(group: readonly string[]): Promise<void> {
  const programs = group.length === 1 ? group : [SEVERAL_FILES, ...group]
  const [program = '', ...args] = [...endWithUs('SIGTERM'), process.execPath, ...programs]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  running.add(child)
  const timer = setTimeout(() => child.kill('SIGKILL'), KILLED_AFTER_MS)
  const [printed, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  running.delete(child)
  clearTimeout(timer)
  output.write(errors)
  const sections = splitByFile(group, printed.trimEnd().split('\n'))
  const hasFailed = (lines: readonly string[]) =>
    lines.length === 0 || lines.some((line) => line.startsWith('not ok'))
  const begun = sections.filter(([, lines]) => lines.length > 0)
  const isExplained = child.exitCode === 0 || begun.some(([, lines]) => hasFailed(lines))
  // Of a process that broke off, the file that it had come to has failed.
  const brokenOff = isExplained ? undefined : begun.at(-1)
  for (const section of sections) {
    const [file, lines] = section
    for (const line of asSubtest(file, lines, hasFailed(lines) || section === brokenOff)) {
      output.write(`${line}\n`)
      page.take(line)
    }
  }
  if (child.exitCode !== 0) lastWords.push(...errors.trimEnd().split('\n').slice(-STDERR_LINES))
  const line = `${page.files} of ${files.length} files: ${page.counts}`
  if (isTTY) process.stdout.write(`\r${line}`)
  else if (page.files % FILES_PER_LINE === 0) process.stdout.write(`${line}\n`)
}

const waiting = groupByProcess(files).values()
const runNext = async () => {
  for (const group of waiting) if (endedBy === null) await runFiles(group)
}
await Promise.all(Array.from({ length: jobs }, runNext))
await lender?.close()
output.end()

const seconds = Math.round((performance.now() - startedAt) / 1000)
if (isTTY) process.stdout.write('\n')
if (page.failures.length > 0) process.stdout.write(`\n${page}\n`)
// A file that could not be loaded has said so there.
const hasError = page.failures.some(({ test }) => test === 'it ended with an error')
if (hasError && lastWords.length > 0) process.stdout.write(`\n${lastWords.slice(-STDERR_LINES).join('\n')}\n`)
if (endedBy !== null) process.stdout.write(`\nended by ${endedBy}\n`)
process.stdout.write(`\nall output: ${relative(process.cwd(), path)}\n`)
process.stdout.write(`${page.counts}, ${page.files} files, ${seconds} s\n`)
process.exitCode = page.failures.length === 0 && page.files === files.length ? 0 : 1
