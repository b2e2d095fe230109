/**
 * Does what nobody else does: ends tasks at their deadline, publishes new messages for abandoned tasks, and removes
 * expired files. While NATS is down, it works on tasks itself. See docs/architecture.md, "A task".
 */
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import type { TaskStorage } from '../ports.ts'
import { Drives, type TaskDriver } from './drives.ts'
import type { TaskMessages } from './messages.ts'

/** Processes touch the tasks that they work on every minute. */
const STALE_AFTER_MS = 180_000
/** The same while NATS is down. */
const OFFLINE_STALE_AFTER_MS = 5_000
/**
 * The same for a new task, whose client waits. A message takes less time, in case only this process has no NATS. Two
 * processes with one task submit it once: the row decides.
 */
const OFFLINE_NEW_AFTER_MS = 500
const CLAIM_MAX_TASKS = 500
const OVERDUE_MAX_TASKS = 500
/** The number of tasks driven at once without messages, and of tasks ended at once at their deadline. */
const OFFLINE_AT_ONCE = 64
const EXPIRED_MAX_OBJECTS = 500

interface SweptTasks {
  readonly read: Tasks['read']
  readonly claimStale: Tasks['claimStale']
  readonly findOverdue: Tasks['findOverdue']
  readonly findExpiredObjects: Tasks['findExpiredObjects']
  readonly removeObjects: Tasks['removeObjects']
}

interface SweepWork extends TaskDriver {
  touch(): Promise<void>
}

interface Sweeping {
  readonly database: { readonly tasks: SweptTasks }
  readonly messages: { readonly publish: TaskMessages['publish'] }
  readonly storage: TaskStorage
  readonly work: SweepWork
  readonly log: PipelineLog
  readonly now: () => number
  /** Returns whether NATS is up. */
  readonly isOnline: () => boolean
}

export class TaskSweep {
  readonly #deps: Sweeping
  readonly #overdue: Drives
  readonly #offline: Drives
  /** Tasks driven without messages: each needs a message once NATS is up again. */
  readonly #driven = new Map<string, number>()

  constructor(deps: Sweeping) {
    this.#deps = deps
    this.#overdue = new Drives(deps, OFFLINE_AT_ONCE)
    this.#offline = new Drives(deps, OFFLINE_AT_ONCE)
  }

  /** Ends tasks at their deadline and picks up abandoned ones. The work on them continues afterwards. */
  async tasks(): Promise<void> {
    const { database, now, isOnline, messages, work } = this.#deps
    const overdue = await database.tasks.findOverdue(now(), OVERDUE_MAX_TASKS)
    this.#overdue.add(await database.tasks.read(overdue.filter((id) => !this.#overdue.has(id))))
    if (isOnline()) {
      const neglected = await database.tasks.claimStale(now() - STALE_AFTER_MS, now(), CLAIM_MAX_TASKS)
      for (const [id, chain] of this.#driven) messages.publish({ id, chain })
      this.#driven.clear()
      for (const task of neglected) messages.publish(task)
      return
    }
    // Tasks that are being worked on here must not crowd out others.
    await work.touch()
    const neglected = await database.tasks.claimStale(
      now() - OFFLINE_STALE_AFTER_MS,
      now(),
      this.#offline.room,
      now() - OFFLINE_NEW_AFTER_MS,
    )
    for (const { id, chain } of neglected) this.#driven.set(id, chain)
    this.#offline.add(await database.tasks.read(neglected.map(({ id }) => id)))
  }

  /** Removes expired files. */
  async objects(): Promise<void> {
    const { database, storage, now } = this.#deps
    for (;;) {
      const keys = await database.tasks.findExpiredObjects(now(), EXPIRED_MAX_OBJECTS)
      if (keys.length === 0) return
      await storage.delete(keys)
      await database.tasks.removeObjects(keys)
      if (keys.length < EXPIRED_MAX_OBJECTS) return
    }
  }
}
