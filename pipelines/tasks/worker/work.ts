/**
 * Works on the tasks whose messages come to this process. A message is redelivered with a delay until its task has
 * ended. Rows are read many at a time, and a poll that changes nothing writes nothing.
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

/** The most submits at once: some hold a whole answer in memory. NATS bounds the polls. */
const SUBMITS_MAX = 128
const SUBMIT_RETRY_MS = 500
/** The delay of a second message about a task that is being worked on here. */
const DOUBLED_DELAY_MS = 30_000
/** The row of a task is touched at least this often while a process works on it. */
const TOUCH_AGE_MS = 60_000
/** Beyond that, tasks are forgotten: their delay starts from the minimum again. */
const TRACKED_MAX_TASKS = 200_000

export interface WorkerEngine extends TaskEngine {
  readonly database: { readonly tasks: Tasks }
  /** Called with the lateness of a poll in milliseconds. */
  readonly onLateness: (lateMs: number) => void
}

export class TaskWork {
  readonly #deps: WorkerEngine
  readonly #queue: BatchWorker<TaskRef, Task>
  /** Tasks being worked on, with their states at the start. */
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

  /** The number of messages that are here. */
  get held(): number {
    return this.#queue.held
  }

  get submitting(): number {
    return [...this.#running.values()].filter((state) => state === 'waiting').length
  }

  receive(delivery: Delivery): void {
    this.#queue.receive(delivery)
  }

  /** Works on a task without a message. Null if it has ended, or is being worked on here already. */
  async once(task: Task): Promise<Next> {
    if (this.#running.has(task.id) || this.#queue.isStopped) return null
    return this.#drive(task)
  }

  /** Tells NATS that the messages here are still being worked on. */
  keep(): void {
    this.#queue.keep()
  }

  /** Touches the rows of tasks that are being worked on here, and of those not touched for long. */
  async touch(): Promise<void> {
    const ids = [...new Set([...this.#running.keys(), ...this.#untouched])]
    this.#untouched.clear()
    await this.#deps.database.tasks.touch(ids, this.#deps.now())
  }

  /** Stops taking tasks. Resolves when all submits have ended, or after the bound. */
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
    // An old message may drop the count of a task that continues in another chain: that costs one poll at most.
    this.#failures.delete(held.message.id)
  }
}
