/**
 * Runs tap on the tests that are named, by file or folder; with `--all` on every test; with `--unit` on those of pure
 * code; else on all that need neither the whole service nor a browser. `--with=FOLDER,FOLDER` adds those of folders.
 * Prints one page; all that tap writes goes to a file. Lends services to the tests meanwhile. Both end when this process
 * does, however that is: what runs below tap is tap's to end, and the kernel ends the services.
 */
import { spawn } from 'node:child_process'
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
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../src/embedded/programs.ts'
import { findChromium } from './chromium-binary.ts'
import { LENDER_PORT_VARIABLE, startLender } from './lend-services.ts'
import { TapPage } from './tap-page.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TESTS = 'test'
const TAP = join(ROOT, 'node_modules/.bin/tap')
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
  'test/src/fetch.test.ts',
  'test/src/markdown',
  'test/src/mcp',
  'test/src/openapi.test.ts',
  'test/src/payments.test.ts',
  'test/src/protocols',
]
const ALL = '--all'
const UNIT_ONLY = '--unit'
const WITH = '--with='
const CONSOLE_BUILD = join(ROOT, 'scripts/console-build.ts')
const TAP_AS_BUILT = join(ROOT, 'node_modules/@tapjs/test/test-built/src/index.ts')
const STDERR_LINES = 20
/** Where nobody watches, a line now and then. */
const FILES_PER_LINE = 25

function startTap(words: readonly string[], env: NodeJS.ProcessEnv) {
  const { NODE_OPTIONS: _, ...ours } = process.env
  const [program = '', ...args] = [...endWithUs('SIGTERM'), process.execPath, TAP, ...words]
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...ours, ...env } })
}

/** Whether tap was built with the plugins that `.taprc` leaves it; as it comes it has them all. */
function isTapBuilt(): boolean {
  if (!existsSync(TAP_AS_BUILT)) return false
  const built = readFileSync(TAP_AS_BUILT, 'utf8')
  const unwanted = readFileSync(join(ROOT, '.taprc'), 'utf8').matchAll(/"!(@tapjs\/[\w-]+)"/g)
  return [...unwanted].every(([, plugin = '']) => !built.includes(plugin))
}

/** Returns the test files of a path: itself, or those below the folder. */
function listTests(path: string): string[] {
  if (!existsSync(path)) throw new Error(`${path}: there is no such file or folder`)
  if (!statSync(path).isDirectory()) return [path]
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(path, name))
}

function listUsualTests(added: readonly string[]): string[] {
  const isIn = (folders: readonly string[], path: string) =>
    folders.some((folder) => path.startsWith(`${folder}/`))
  return listTests(TESTS).filter((path) => isIn(added, path) || !isIn(LONG, path))
}

function chooseTests(words: readonly string[]): string[] {
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

/** A new file for all that tap writes; those of other days go. */
function outputPath(): string {
  mkdirSync(OUTPUTS, { recursive: true })
  for (const name of readdirSync(OUTPUTS)) {
    const path = join(OUTPUTS, name)
    if (Date.now() - statSync(path).mtimeMs > OUTPUTS_KEPT_MS) rmSync(path, { force: true })
  }
  return join(OUTPUTS, `${process.pid}.tap`)
}

const words = process.argv.slice(2)
const own = [ALL, UNIT_ONLY]
const options = words.filter((word) => word.startsWith('-') && !own.includes(word) && !word.startsWith(WITH))
const files = [...new Set(chooseTests(words))]
if (files.some((path) => path.startsWith(BROWSER_TESTS))) await prepareBrowserTests()
if (!isTapBuilt()) await once(spawn(process.execPath, [TAP, 'build'], { stdio: 'ignore' }), 'exit')
const lender = await startLender()
const startedAt = performance.now()
const path = outputPath()
const output = createWriteStream(path)
const tap = startTap(['--reporter=tap', ...options, ...files], {
  [LENDER_PORT_VARIABLE]: String(lender.port),
  NODE_COMPILE_CACHE: join(CACHE, 'compiled'),
})
// From a terminal tap has it as well; from elsewhere it is passed on. We go when tap has gone.
process.on('SIGINT', () => undefined)
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => tap.kill(signal))

const page = new TapPage()
const { isTTY } = process.stdout
const showProgress = () => {
  const line = `${page.files} of ${files.length} files: ${page.counts}`
  if (isTTY) process.stdout.write(`\r${line}`)
  else if (page.files % FILES_PER_LINE === 0) process.stdout.write(`${line}\n`)
}
const lastWords: string[] = []
const ended = once(tap, 'exit')
tap.stdout.pipe(output, { end: false })
tap.stderr.pipe(output, { end: false })
createInterface({ input: tap.stderr }).on('line', (line) => {
  lastWords.push(line)
  if (lastWords.length > STDERR_LINES) lastWords.shift()
})
for await (const line of createInterface({ input: tap.stdout })) if (page.take(line)) showProgress()
const [code] = await ended
await lender.close()
output.end()

const seconds = Math.round((performance.now() - startedAt) / 1000)
const isLost = code !== 0 && page.failures.length === 0
if (isTTY) process.stdout.write('\n')
if (page.failures.length > 0) process.stdout.write(`\n${page}\n`)
// A file that could not be loaded has said so there.
const hasError = page.failures.some(({ test }) => test === 'it ended with an error')
if ((isLost || hasError) && lastWords.length > 0) process.stdout.write(`\n${lastWords.join('\n')}\n`)
if (isLost) process.stdout.write(`\ntap ended with ${code}\n`)
process.stdout.write(`\nall that tap wrote: ${relative(process.cwd(), path)}\n`)
process.stdout.write(`${page.counts}, ${page.files} files, ${seconds} s\n`)
process.exitCode = code === 0 && page.failures.length === 0 && page.files === files.length ? 0 : 1
