/**
 * The tests that are named, by file or folder; with `--all` every test; else those of the parts and a minute of chaos,
 * without the rest of the whole service and without a browser, which take two thirds of the time. `--with=FOLDER,FOLDER`
 * adds those of folders. Runs tap beside a lender of services. Both end when this process does, however that is: what
 * runs below tap is tap's to end, and the kernel ends the services.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../src/embedded/programs.ts'
import { findChromium } from './chromium-binary.ts'
import { LENDER_PORT_VARIABLE, startLender } from './lend-services.ts'
import { filesOfSharedProcess, SHARED_PROCESS } from './shared-process-files.ts'

const ROOT = new URL('../../', import.meta.url)
const TESTS = 'test'
const TAP = fileURLToPath(new URL('node_modules/.bin/tap', ROOT))
const BROWSER_TESTS = 'test/browser'
/** Folders of the tests of the whole service, from the outside, and of those that measure for a minute. */
const LONG = [BROWSER_TESTS, 'test/end-to-end', 'test/specification', 'test/growth']
const ALL = '--all'
const WITH = '--with='
const CONSOLE_BUILD = fileURLToPath(new URL('scripts/console-build.ts', ROOT))
const TAP_AS_BUILT = new URL('node_modules/@tapjs/test/test-built/src/index.ts', ROOT)

function startTap(
  words: readonly string[],
  stdio: 'inherit' | 'ignore',
  more: NodeJS.ProcessEnv = {},
): ChildProcess {
  const { NODE_OPTIONS: _, ...ours } = process.env
  const [program = '', ...args] = [...endWithUs('SIGTERM'), process.execPath, TAP, ...words]
  return spawn(program, args, { stdio, env: { ...ours, ...more } })
}

/** Whether tap was built with the plugins that `.taprc` leaves it; as it comes it has them all. */
function isTapBuilt(): boolean {
  if (!existsSync(TAP_AS_BUILT)) return false
  const built = readFileSync(TAP_AS_BUILT, 'utf8')
  const unwanted = readFileSync(new URL('.taprc', ROOT), 'utf8').matchAll(/"!(@tapjs\/[\w-]+)"/g)
  return [...unwanted].every(([, plugin = '']) => !built.includes(plugin))
}

/** Returns the test files below a folder; in place of those of a shared process, its file. */
function testsBelow(folder: string): string[] {
  const shared = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => basename(path) === SHARED_PROCESS && !path.startsWith('support/'),
  )
  const single = shared.includes(SHARED_PROCESS) ? [] : filesOfSharedProcess(folder)
  return [...shared, ...single].map((path) => join(folder, path))
}

/** Returns the tests that run unless some are named. tap begins them in the order of their names. */
function usualTests(areAll: boolean, added: readonly string[]): string[] {
  const isIn = (folders: readonly string[], path: string) =>
    folders.some((folder) => path.startsWith(`${folder}/`))
  return testsBelow(TESTS).filter((path) => areAll || isIn(added, path) || !isIn(LONG, path))
}

/**
 * Has a browser at hand, and the console as its sources are: the time of a test is not for downloads, and pages of
 * yesterday show nothing.
 */
async function prepareBrowserTests(): Promise<void> {
  await findChromium()
  await once(spawn(process.execPath, [CONSOLE_BUILD], { stdio: 'inherit' }), 'exit')
}

const given = process.argv.slice(2)
const added = given
  .filter((word) => word.startsWith(WITH))
  .flatMap((word) => word.slice(WITH.length).split(','))
const missing = added.find((folder) => !existsSync(folder))
if (missing !== undefined) throw new Error(`${WITH}${missing}: there is no such folder`)
const words = given.filter((word) => word !== ALL && !word.startsWith(WITH))
const options = words.filter((word) => word.startsWith('-'))
const named = words.filter((word) => !word.startsWith('-'))
const mistyped = named.find((path) => !existsSync(path))
if (mistyped !== undefined) throw new Error(`${mistyped}: there is no such file or folder`)
const files =
  named.length > 0
    ? named.flatMap((path) => (statSync(path).isDirectory() ? testsBelow(path) : [path]))
    : usualTests(given.includes(ALL), added)
if (files.some((path) => path.startsWith(BROWSER_TESTS))) await prepareBrowserTests()
if (!isTapBuilt()) await once(startTap(['build'], 'ignore'), 'exit')
const lender = await startLender()
const tap = startTap([...options, ...files], 'inherit', {
  [LENDER_PORT_VARIABLE]: String(lender.port),
})
// From a terminal tap has it as well; from elsewhere it is passed on. We go when tap has gone.
process.on('SIGINT', () => undefined)
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => tap.kill(signal))
const [code] = await once(tap, 'exit')
await lender.close()
process.exitCode = code ?? 1
