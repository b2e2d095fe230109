/** What test programs with their own npm script share: the exit code, teardowns, and the audit of the books. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { UsageError } from '../../bench/harness/command-line.ts'
import type { Teardown } from './engines.ts'
import { commandEnv, type TestService } from './service.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const EXIT_WRONG_USAGE = 2

/** Runs the program with the arguments of the process and sets its exit code. Whatever it started ends with it. */
export async function runTestProgram(
  usage: string,
  main: (t: Teardown, args: string[]) => Promise<number>,
): Promise<void> {
  const endings: (() => unknown)[] = []
  try {
    const t = { teardown: (ending: () => unknown) => void endings.push(ending) }
    process.exitCode = await main(t, process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n\n${usage}`)
    process.exitCode = EXIT_WRONG_USAGE
  } finally {
    for (const end of endings.reverse()) await end()
  }
}

/** Runs a command of the service and returns its answer. @throws Error with what the command printed */
export async function runServiceCommand(
  service: TestService,
  ...args: string[]
): Promise<Record<string, unknown>> {
  const env = { ...process.env, ...commandEnv(service) }
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args, '--json'], { env })
  return JSON.parse(stdout)
}

/** Returns what the audit of the books prints where it finds a difference; null where they agree. */
export const findBookDifference = (service: TestService): Promise<string | null> =>
  runServiceCommand(service, 'wallet', 'verify', '--full').then(
    () => null,
    (error: Error & { stdout?: string }) => error.stdout || error.message,
  )
