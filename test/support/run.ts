/**
 * The tests that are named; with `--all` every test; else those of the parts and a minute of chaos, without the rest of the
 * whole service and without a browser, which take two thirds of the time. `--with=FOLDER,FOLDER` adds those of folders. Runs
 * tap beside a lender of services. Both end when this process does, however that is: what runs below tap is tap's to end,
 * and the kernel ends the services.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../src/embedded/programs.ts'
import { findChromium } from './chromium-binary.ts'
import { LENDER_PORT_VARIABLE, startLender } from './lend-services.ts'
import { filesOfSharedProcess, SHARED_PROCESS } from './shared-process-files.ts'

const ROOT = new URL('../../', import.meta.url)
const TESTS = fileURLToPath(new URL('test', ROOT))
const TAP = fileURLToPath(new URL('node_modules/.bin/tap', ROOT))
const BROWSER_TESTS = 'test/browser'
/** Folders of the tests of the whole service, from the outside. */
const WHOLE_SERVICE = [BROWSER_TESTS, 'test/end-to-end']
const ALL = '--all'
const WITH = '--with='
const CONSOLE_BUILD = fileURLToPath(new URL('deploy/console-build.ts', ROOT))
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

/** Test files; in place of those of a shared process, its file. tap begins them in the order of their names. */
function testFiles(areAll: boolean, added: readonly string[]): string[] {
  const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  const shared = files.filter((path) => path.endsWith(`/${SHARED_PROCESS}`) && !path.startsWith('support/'))
  const inShared = new Set(
    shared.flatMap((path) =>
      filesOfSharedProcess(join(TESTS, dirname(path))).map((name) => join(dirname(path), name)),
    ),
  )
  const single = files.filter((path) => path.endsWith('.test.ts') && !inShared.has(path))
  const paths = [...shared, ...single].map((path) => join('test', path))
  const isIn = (folders: readonly string[], path: string) =>
    folders.some((folder) => path.startsWith(`${folder}/`))
  return areAll ? paths : paths.filter((path) => isIn(added, path) || !isIn(WHOLE_SERVICE, path))
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
const named = words.filter((word) => !word.startsWith('-'))
const mistyped = named.find((path) => !existsSync(path))
if (mistyped !== undefined) throw new Error(`${mistyped}: there is no such file or folder`)
const files = named.length > 0 ? [] : testFiles(given.includes(ALL), added)
if ([...named, ...files].some((path) => path.startsWith(BROWSER_TESTS))) await prepareBrowserTests()
if (!isTapBuilt()) await once(startTap(['build'], 'ignore'), 'exit')
const lender = await startLender()
const tap = startTap([...words, ...files], 'inherit', {
  [LENDER_PORT_VARIABLE]: String(lender.port),
})
// From a terminal tap has it as well; from elsewhere it is passed on. We go when tap has gone.
process.on('SIGINT', () => undefined)
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => tap.kill(signal))
const [code] = await once(tap, 'exit')
await lender.close()
process.exitCode = code ?? 1
