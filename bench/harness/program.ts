/** The frame of every bench program: arguments, interruption, facts about the machine. */
import { setTimeout as delay } from 'node:timers/promises'
import { endAll, killAll } from './children.ts'
import { UsageError } from './command-line.ts'
import { describeCheckout, describeMachine, type Machine } from './machine.ts'
import { busyPercentDuring } from './proc.ts'

/** Long enough to notice other work on the machine. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130
const MS_PER_SECOND = 1_000

export type Say = (line: string) => void

export const sayOnStderr: Say = (line) => {
  process.stderr.write(`${line}\n`)
}

/** Thrown when a signal stops the run. */
class Interrupted extends Error {}

export interface Control {
  /** Throws when a signal has stopped the run. */
  checkpoint(): void
  /** Aborted when a signal stops the run. */
  readonly signal: AbortSignal
}

/**
 * Runs `work`, and always ends all children. After a signal the work fails at its next checkpoint, or when a child that
 * it needs has ended. A second signal ends the program at once.
 */
export async function interruptible(say: Say, work: (control: Control) => Promise<number>): Promise<number> {
  const stop = new AbortController()
  const { signal } = stop
  const interrupt = (): void => {
    if (signal.aborted) process.exit(EXIT_INTERRUPTED) // The `exit` handler kills the children.
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

/** Returns how busy the machine is with other work, in percent. */
async function busyBefore(say: Say): Promise<number> {
  const percent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (percent > BUSY_PERCENT)
    say(`the machine is ${Math.round(percent)} % busy with other work: the times will be wrong`)
  return percent
}

/** Date, machine and versions of a run. */
export interface RunFacts {
  readonly date: string
  readonly seconds: number
  /** How busy the machine was with other work just before the run. */
  readonly busyBeforePercent: number
  readonly machine: Machine
  /** Version and commit. */
  readonly tollgate: string
  readonly node: string
}

/** Measures how busy the machine is, then runs the measurement. */
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

/** Runs a whole program and sets its exit code. */
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
