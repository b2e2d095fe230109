/** `serve` as a person starts it, without anything prepared for it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../../src/embedded/programs.ts'
import type { Teardown } from '../../support/engines.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const SERVE = [process.execPath, MAIN, 'serve']
/** What `npm start` runs, see package.json. */
const PROGRAM = fileURLToPath(
  new URL('../../../node_modules/.cache/tollgate/program/src/main.js', import.meta.url),
)
export const NPM_START = [process.execPath, '--max-semi-space-size=2', '--expose-gc', PROGRAM, 'serve']
const OURS = /^(TOLLGATE_|DATABASE_URL$|NATS_URL$|CLICKHOUSE_URL$|S3_)/

export interface ServeOptions {
  readonly cwd: string
  /** Of what the service reads, nothing else is set. */
  readonly env?: Readonly<Record<string, string>>
  /** Instead of the program itself. */
  readonly command?: readonly string[]
}

export interface ServeProcess {
  readonly pid: number
  /** What it has printed so far. */
  stdout(): string
  stderr(): string
  signal(signal: NodeJS.Signals): void
  /** To it and its terminal's group. */
  signalGroup(signal: NodeJS.Signals): void
  /** Its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>
}

/** Killed with the test, however that ends. */
export function serveProcess(t: Teardown, { cwd, env = {}, command = SERVE }: ServeOptions): ServeProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !OURS.test(name))
  const [program = '', ...args] = [...endWithUs('SIGKILL'), ...command]
  const child = spawn(program, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    // A group of its own, as a terminal gives it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (text) => (output.stdout += text))
  child.stderr.on('data', (text) => (output.stderr += text))
  const pid = child.pid ?? 0
  const signalGroup = (signal: NodeJS.Signals) => {
    try {
      process.kill(-pid, signal)
    } catch {
      // Gone already.
    }
  }
  t.teardown(() => signalGroup('SIGKILL'))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const signal = (name: NodeJS.Signals) => void child.kill(name)
  return { pid, signal, stdout: () => output.stdout, stderr: () => output.stderr, signalGroup, ended }
}
