import { endAll } from '../harness/children.ts'
import { type Control, interruptible, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { publish } from '../report/report.ts'
import { measure } from './measure.ts'
import { FULL_TASKS, type Options, parseOptions, usage } from './options.ts'
import { printReport } from './report.ts'
import type { TaskResults } from './results.ts'
import { type Service, startService, startUpstream } from './service.ts'

/**
 * The bench of tasks: the cost of polling thousands of open tasks, the lateness of polls, and the time to settle an end.
 * The bench starts its own service, engines and upstream, ends them, and removes their data. Phases: measure.ts.
 * Report: report.ts.
 */

const measureAll = async (options: Options, folder: string, { checkpoint }: Control) => {
  let service: Service | null = null
  try {
    const upstream = await startUpstream()
    service = await startService(folder, upstream.port)
    const measured = await measure({ options, service, upstream, say: sayOnStderr, checkpoint })
    return {
      isFull: options.tasks >= FULL_TASKS,
      tasks: options.tasks,
      seed: options.seed,
      ...measured,
    }
  } finally {
    await service?.close().catch(() => {})
  }
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const work = await enterWorkFolder()
    try {
      const results: TaskResults = await withFacts(sayOnStderr, () =>
        measureAll(options, work.folder, control),
      )
      const place = { names: ['tasks', 'partial.tasks'], isFull: results.isFull, out: options.out } as const
      await publish(results, printReport(results), place, sayOnStderr)
      return results.failures.length === 0 ? 0 : 1
    } finally {
      await endAll()
      work.leave()
    }
  })

await runProgram(parseOptions, usage, run)
