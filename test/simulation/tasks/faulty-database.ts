/** PostgreSQL as one process sees it: slow, away at times, and dead in the middle of a call when the process is. */
import type { Random } from '../random.ts'
import type { Process } from '../virtual-time.ts'
import type { MemoryTasks, SimulatedTasks } from './memory-tasks.ts'
import type { TaskFaults } from './task-faults.ts'

const LATENCY_MAX_MS = 40

const away = (): Error => Object.assign(new Error('PostgreSQL is away'), { code: 'ECONNRESET' })

export function databaseOf(
  process: Process,
  tasks: MemoryTasks,
  random: Random,
  faults: TaskFaults,
): { readonly tasks: SimulatedTasks; readonly lostSubmits: SimulatedTasks } {
  const call = <T>(work: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      process.settleAfter(random.int(0, LATENCY_MAX_MS), () => {
        faults.mayDie(process)
        if (faults.isDatabaseDown || faults.happens(0.01)) return reject(away())
        const done = work()
        // Done, and then the process is gone, or the answer is.
        faults.mayDie(process)
        process.settleAfter(random.int(0, LATENCY_MAX_MS), () => {
          faults.mayDie(process)
          if (faults.happens(0.02)) reject(away())
          else done.then(resolve, reject)
        })
      })
    })
  const calls = [
    ...['create', 'applyTransition', 'read', 'find', 'list', 'listOpenJobs', 'deleteRecord', 'listAll'],
    ...['claimStale', 'findOverdue', 'touch', 'countOpen', 'recordObjects'],
    ...['findExpiredObjects', 'removeObjects', 'claim', 'recordFinding'],
  ] as (keyof SimulatedTasks)[]
  const wrapped = calls.map((name) => {
    const method = tasks[name].bind(tasks) as (...args: unknown[]) => Promise<unknown>
    return [name, (...args: unknown[]) => call(() => method(...args))]
  })
  const simulated = Object.fromEntries(wrapped) as SimulatedTasks
  return { tasks: simulated, lostSubmits: simulated }
}
