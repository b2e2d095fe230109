/**
 * What nobody else does: tasks whose time is up are ended, those that nobody looks after get a new message, and files
 * whose time is up are removed. While NATS is away it works on tasks itself. See docs/architecture.md, "A task".
 */
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { EngineDeps } from '../engine.ts'
import type { TaskMessages } from './messages.ts'
import type { TaskWork } from './work.ts'

/** A process that works on a task touches it every minute. */
export const STALE_AFTER_MS = 180_000
/** The same while no messages travel. */
export const OFFLINE_STALE_AFTER_MS = 5_000
const CLAIM_MAX_TASKS = 500
const OVERDUE_MAX_TASKS = 500
/** Tasks driven at once without messages. */
const OFFLINE_AT_ONCE = 64
const EXPIRED_MAX_OBJECTS = 500

export interface SweepDeps extends Pick<EngineDeps, 'log' | 'now' | 'storage'> {
  readonly database: Pick<
    Tasks,
    'readTasks' | 'claimStaleTasks' | 'findOverdueTasks' | 'findExpiredObjects' | 'removeObjects'
  >
  readonly messages: Pick<TaskMessages, 'publish'>
  readonly work: Pick<TaskWork, 'once'>
  /** Messages travel. */
  readonly isOnline: () => boolean
}

export class TaskSweep {
  readonly #deps: SweepDeps
  /** Driven without messages: once messages travel again each needs one. */
  readonly #driven = new Map<string, number>()

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  /** Tasks whose time is up, and those that nobody looks after. */
  async tasks(): Promise<void> {
    const { database, now, isOnline, messages } = this.#deps
    const overdue = await database.findOverdueTasks(now(), OVERDUE_MAX_TASKS)
    await this.#drive(await database.readTasks(overdue))
    const after = isOnline() ? STALE_AFTER_MS : OFFLINE_STALE_AFTER_MS
    const neglected = await database.claimStaleTasks(now() - after, now(), CLAIM_MAX_TASKS)
    if (isOnline()) {
      for (const [id, chain] of this.#driven) messages.publish({ id, chain })
      this.#driven.clear()
      for (const task of neglected) messages.publish(task)
      return
    }
    for (const { id, chain } of neglected) this.#driven.set(id, chain)
    await this.#drive(await database.readTasks(neglected.map(({ id }) => id)))
  }

  /** Files whose time is up. */
  async objects(): Promise<void> {
    const { database, storage, now } = this.#deps
    for (;;) {
      const keys = await database.findExpiredObjects(now(), EXPIRED_MAX_OBJECTS)
      if (keys.length === 0) return
      await storage.delete(keys)
      await database.removeObjects(keys)
      if (keys.length < EXPIRED_MAX_OBJECTS) return
    }
  }

  async #drive(tasks: readonly Task[]): Promise<void> {
    const left = [...tasks]
    const driver = async () => {
      for (let task = left.pop(); task !== undefined; task = left.pop())
        await this.#deps.work.once(task).catch((error: unknown) => {
          this.#deps.log.warn({ task: task?.id, error }, 'Failed to work on a task; retrying')
        })
    }
    await Promise.all(Array.from({ length: Math.min(OFFLINE_AT_ONCE, tasks.length) }, driver))
  }
}
