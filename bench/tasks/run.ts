import { fileURLToPath } from 'node:url'
import { endAll } from '../harness/children.ts'
import { describeCheckout, describeMachine } from '../harness/machine.ts'
import {
  busyBefore,
  type Control,
  interruptible,
  runProgram,
  sayOnStderr,
  writeResults,
} from '../harness/program.ts'
import { enterGround } from '../logs/ground.ts'
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
const MS_PER_SECOND = 1_000

const measureAll = async (
  options: Options,
  folder: string,
  { checkpoint }: Control,
): Promise<TaskResults> => {
  const busyBeforePercent = await busyBefore(sayOnStderr)
  const startedAt = performance.now()
  let service: Service | null = null
  try {
    const upstream = await startUpstream()
    service = await startService(folder, upstream.port)
    const measured = await measure({ options, service, upstream, say: sayOnStderr, checkpoint })
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

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const ground = await enterGround(null)
    try {
      const results = await measureAll(options, ground.folder, control)
      process.stdout.write(`${textOf(results)}\n`)
      // A partial run never takes the place of the full one.
      const name = results.isFull || options.out !== null ? 'tasks' : 'partial.tasks'
      const written = {
        results,
        chart: chartOf(results),
        report: (chart: string) => reportOf(results, chart),
      }
      writeResults(options.out ?? RESULTS, name, written, sayOnStderr)
      return results.failures.length === 0 ? 0 : 1
    } finally {
      await endAll()
      ground.leave()
    }
  })

await runProgram(parseOptions, usage, run)
