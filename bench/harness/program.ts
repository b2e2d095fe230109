/** What every bench program does around its measurement: its arguments, its interruption, its results on disk. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { UsageError } from '../options.ts'
import { endAll, killAll } from './children.ts'
import { busyPercentDuring } from './proc.ts'

/** Long enough to see a neighbour at work. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

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
export async function busyBefore(say: Say): Promise<number> {
  const percent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (percent > BUSY_PERCENT)
    say(`the machine is ${Math.round(percent)} % busy with other things: times will be wrong`)
  return percent
}

export interface Written {
  readonly results: unknown
  readonly chart: string
  /** Markdown; told what the chart's file is called. */
  readonly report: (chartFile: string) => string
}

export function writeResults(
  folder: string,
  name: string,
  { results, chart, report }: Written,
  say: Say,
): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), chart)
  writeFileSync(join(folder, `${name}.md`), report(`${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
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
