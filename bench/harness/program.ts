/** What every bench program does around its measurement: its arguments, its interruption, the circumstances. */
import { setTimeout as delay } from 'node:timers/promises'
import { endAll, killAll } from './children.ts'
import { UsageError } from './command-line.ts'
import { describeCheckout, describeMachine, type Machine } from './machine.ts'
import { busyPercentDuring } from './proc.ts'

/** Long enough to see a neighbour at work. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130
const MS_PER_SECOND = 1_000

export type Say = (line: string) => void

export const sayOnStderr: Say = (line) => {
  process.stderr.write(`${line}\n`)
}

/** Thrown when the run was told to stop. */
class Interrupted extends Error {}

export interface Control {
  /** Throws to end the work. */
  checkpoint(): void
  /** Aborted when the run is told to stop. */
  readonly signal: AbortSignal
}

/**
 * Carries `work` out and ends all children, however it ends. Told to stop, the work fails at its next checkpoint, at
 * the latest when what it talks to is gone; told twice, the program exits at once.
 */
export async function interruptible(say: Say, work: (control: Control) => Promise<number>): Promise<number> {
  const stop = new AbortController()
  const { signal } = stop
  const interrupt = (): void => {
    if (signal.aborted) process.exit(EXIT_INTERRUPTED) // `exit` kills what is left
    say('stopping …')
    stop.abort(new Interrupted())
    void endAll()
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  process.on('exit', killAll)
  try {
    return await work({ signal, checkpoint: () => signal.throwIfAborted() })
  } catch (error) {
    if (!signal.aborted) throw error
    return EXIT_INTERRUPTED
  } finally {
    await endAll()
  }
}

/** How busy the machine is with other things, percent. */
async function busyBefore(say: Say): Promise<number> {
  const percent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (percent > BUSY_PERCENT)
    say(`the machine is ${Math.round(percent)} % busy with other things: times will be wrong`)
  return percent
}

/** When a measurement was made, on what machine and of what. */
export interface RunFacts {
  readonly date: string
  readonly seconds: number
  /** How busy the machine was with other things just before the run. */
  readonly busyBeforePercent: number
  readonly machine: Machine
  /** Version and commit. */
  readonly tollgate: string
  readonly node: string
}

/** Carries the measurement out once it is known how busy the machine is. */
export async function withFacts<T>(say: Say, work: () => Promise<T>): Promise<RunFacts & T> {
  const busyBeforePercent = await busyBefore(say)
  const startedAt = performance.now()
  const measured = await work()
  return {
    date: new Date().toISOString().slice(0, 10),
    seconds: (performance.now() - startedAt) / MS_PER_SECOND,
    busyBeforePercent,
    machine: describeMachine(),
    tollgate: describeCheckout(),
    node: process.versions.node,
    ...measured,
  }
}

/** The whole program: sets the exit code. */
export async function runProgram<O extends { readonly help: boolean }>(
  parse: (args: string[]) => O,
  usage: () => string,
  run: (options: O) => Promise<number>,
): Promise<void> {
  try {
    const options = parse(process.argv.slice(2))
    if (options.help) process.stdout.write(usage())
    else process.exitCode = await run(options)
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n`)
    process.exitCode = error instanceof UsageError ? EXIT_USAGE : 1
  }
}
