import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { endAll, killAll } from '../harness/children.ts'
import { describeCheckout, describeMachine } from '../harness/machine.ts'
import { busyPercentDuring } from '../harness/proc.ts'
import { enterGround } from '../logs/ground.ts'
import { UsageError } from '../options.ts'
import { measure } from './measure.ts'
import { FULL_TASKS, type Options, parseOptions, usage } from './options.ts'
import { chartOf, reportOf, textOf } from './report.ts'
import type { TaskResults } from './results.ts'
import { type Service, startService, startUpstream } from './service.ts'

/**
 * The bench of tasks: what it costs to look at thousands of open tasks, how late the looks are, and how soon an end is
 * settled. Service, engines and upstream are the bench's own and end with it, however it ends; so does what they wrote.
 * What is done: measure.ts; what comes of it: report.ts.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RESULTS = fileURLToPath(new URL('../results', import.meta.url))
/** Long enough to see a neighbour at work. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const MS_PER_SECOND = 1_000
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

/** Thrown when the run was told to stop. */
class Interrupted extends Error {}

const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

const measureAll = async (options: Options, folder: string, checkpoint: () => void): Promise<TaskResults> => {
  const busyBeforePercent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (busyBeforePercent > BUSY_PERCENT)
    say(`the machine is ${Math.round(busyBeforePercent)} % busy with other things: times will be wrong`)
  const startedAt = performance.now()
  let service: Service | null = null
  try {
    const upstream = await startUpstream()
    service = await startService(folder, upstream.port)
    const measured = await measure({ options, service, upstream, say, checkpoint })
    return {
      date: new Date().toISOString().slice(0, 10),
      isFull: options.tasks >= FULL_TASKS,
      tasks: options.tasks,
      seed: options.seed,
      seconds: (performance.now() - startedAt) / MS_PER_SECOND,
      busyBeforePercent,
      machine: describeMachine(),
      tollgate: describeCheckout(ROOT),
      node: process.versions.node,
      ...measured,
    }
  } finally {
    await service?.close().catch(() => {})
  }
}

/** A partial run never takes the place of the full one. */
const write = (results: TaskResults, { out }: Options): void => {
  const folder = out ?? RESULTS
  const name = results.isFull || out !== null ? 'tasks' : 'partial.tasks'
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), chartOf(results))
  writeFileSync(join(folder, `${name}.md`), reportOf(results, `${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
}

const run = async (options: Options): Promise<number> => {
  let interrupted = false
  const interrupt = (): void => {
    if (interrupted) process.exit(EXIT_INTERRUPTED) // asked twice: `exit` kills what is left
    interrupted = true
    say('stopping …')
    void endAll()
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  process.on('exit', killAll)
  const checkpoint = (): void => {
    if (interrupted) throw new Interrupted()
  }
  const ground = await enterGround(null)
  try {
    const results = await measureAll(options, ground.folder, checkpoint)
    process.stdout.write(`${textOf(results)}\n`)
    write(results, options)
    return results.failures.length === 0 ? 0 : 1
  } catch (error) {
    if (!interrupted) throw error
    return EXIT_INTERRUPTED
  } finally {
    await endAll()
    ground.leave()
  }
}

const main = async (): Promise<number> => {
  const options = parseOptions(process.argv.slice(2))
  if (!options.help) return run(options)
  process.stdout.write(usage())
  return 0
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`bench: ${error.message}\n`)
  return error instanceof UsageError ? EXIT_USAGE : 1
})
