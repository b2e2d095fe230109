/**
 * Works on the tasks whose messages come to this process. A message is handed back with a delay until its task has
 * ended; rows are read many at a time; a look that changes nothing writes nothing.
 * See docs/failure-modes.md, "Money", row 23.
 */
import { isFinal } from '../../../schemas/tasks/task.ts'
import type { Delivery } from '../../../src/nats/nats.ts'
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { BatchWorker, FAULT_DELAY_MS, type Held } from '../../settlement/batch-worker.ts'
import type { TaskEngine } from '../engine.ts'
import { drive, type Next } from '../task.ts'
import { decodeTaskMessage, type TaskRef } from './messages.ts'

/** Submits at once: some hold a whole answer in memory. Polls are bounded by what NATS gives one process. */
const SUBMITS_MAX = 128
const SUBMIT_RETRY_MS = 500
/** A message about a task that is being worked on here. */
const DOUBLED_DELAY_MS = 30_000
/** How often at least a row shows that a process works on it. */
const TOUCH_AGE_MS = 60_000
/** More are forgotten: it only means that a delay begins at its least again. */
const TRACKED_MAX_TASKS = 200_000

export interface WorkerEngine extends TaskEngine {
  readonly database: { readonly tasks: Tasks }
  /** How late a look was, milliseconds. */
  readonly onLateness: (lateMs: number) => void
}

export class TaskWork {
  readonly #deps: WorkerEngine
  readonly #queue: BatchWorker<TaskRef, Task>
  /** Being worked on, with how each stood when that began. */
  readonly #running = new Map<string, Task['state']>()
  readonly #failures = new Map<string, number>()
  readonly #dueAt = new Map<string, number>()
  readonly #untouched = new Set<string>()

  constructor(deps: WorkerEngine) {
    this.#deps = deps
    this.#queue = new BatchWorker(deps, {
      subject: 'task',
      title: 'Working on tasks',
      decode: decodeTaskMessage,
      read: (ids) => deps.database.tasks.read(ids),
      work: (held, task) => void this.#work(held, task),
    })
  }

  /** Messages here, worked on or about to be. */
  get held(): number {
    return this.#queue.held
  }

  get submitting(): number {
    return [...this.#running.values()].filter((state) => state === 'waiting').length
  }

  receive(delivery: Delivery): void {
    this.#queue.receive(delivery)
  }

  /** One task without a message, as the sweep finds it. Null: it has ended, or is worked on here already. */
  async once(task: Task): Promise<Next> {
    if (this.#running.has(task.id) || this.#queue.isStopped) return null
    return this.#drive(task)
  }

  /** Says to NATS that what is here is still worked on. */
  keep(): void {
    this.#queue.keep()
  }

  /** Says to PostgreSQL that somebody looks after what is worked on here, and after what was not touched for long. */
  async touch(): Promise<void> {
    const ids = [...new Set([...this.#running.keys(), ...this.#untouched])]
    this.#untouched.clear()
    await this.#deps.database.tasks.touch(ids, this.#deps.now())
  }

  /** Stops taking tasks. Ends when all submits have ended or the bound has passed. */
  stop(boundMs: number): Promise<void> {
    return this.#queue.stop(boundMs, () => this.#running.size > 0)
  }

  async #work(held: Held<TaskRef>, task: Task | null): Promise<void> {
    const { id, chain } = held.message
    if (task === null || isFinal(task.state) || chain < task.chain) return this.#finish(held)
    if (this.#running.has(id)) return this.#queue.release(held, DOUBLED_DELAY_MS)
    if (task.state === 'waiting' && this.submitting >= SUBMITS_MAX)
      return this.#queue.release(held, SUBMIT_RETRY_MS)
    this.#noteLateness(id)
    try {
      const next = await this.#drive(task)
      this.#queue.outage.noteSuccess()
      if (next === null) return this.#finish(held)
      this.#queue.release(held, next.delayMs)
      this.#track(this.#dueAt, id, this.#deps.now() + next.delayMs)
    } catch (error) {
      this.#queue.outage.noteFailure(error)
      this.#queue.release(held, FAULT_DELAY_MS)
    }
  }

  async #drive(task: Task): Promise<Next> {
    const { id } = task
    this.#running.set(id, task.state)
    try {
      const next = await drive(this.#deps, task, this.#failures.get(id) ?? 0)
      if (next?.hasFailed) this.#track(this.#failures, id, (this.#failures.get(id) ?? 0) + 1)
      else this.#failures.delete(id)
      if (next !== null && this.#deps.now() - task.touchedAt >= TOUCH_AGE_MS) this.#untouched.add(id)
      return next
    } finally {
      this.#running.delete(id)
    }
  }

  #noteLateness(id: string): void {
    const dueAt = this.#dueAt.get(id)
    this.#dueAt.delete(id)
    if (dueAt !== undefined) this.#deps.onLateness(Math.max(0, this.#deps.now() - dueAt))
  }

  #track(map: Map<string, number>, id: string, value: number): void {
    if (map.size >= TRACKED_MAX_TASKS) map.delete(map.keys().next().value!)
    map.set(id, value)
  }

  #finish(held: Held<TaskRef>): void {
    this.#queue.finish(held)
    // An old message of a task that goes on in another chain must not forget for it; that costs a poll at most.
    this.#failures.delete(held.message.id)
  }
}
