/**
 * Works on the tasks whose messages come to this process. A message is handed back with a delay until its task has
 * ended; rows are read many at a time; a look that changes nothing writes nothing.
 * See docs/failure-modes.md, "Money", row 23.
 */
import { isFinal } from '../../../schemas/tasks/task.ts'
import type { Delivery } from '../../../src/nats/nats.ts'
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { OutageLog } from '../../settlement/retrying.ts'
import type { EngineDeps } from '../engine.ts'
import { drive, type Next } from '../task.ts'
import { decodeTaskMessage } from './messages.ts'

/** Submits at once: some hold a whole answer in memory. Polls are bounded by what NATS gives one process. */
const SUBMITS_MAX = 128
const SUBMIT_RETRY_MS = 500
const READ_LINGER_MS = 5
const READ_MAX_TASKS = 500
/** After what nobody foresaw, or while PostgreSQL is away. */
const FAULT_DELAY_MS = 2_000
/** A message about a task that is being worked on here. */
const DOUBLED_DELAY_MS = 30_000
/** How often a stop looks whether all has ended. */
const STOP_POLL_MS = 50
/** A row says at least so often that somebody looks after it. */
const TOUCH_AGE_MS = 60_000
/** More are forgotten: it only means that a delay begins at its least again. */
const TRACKED_MAX_TASKS = 200_000

export interface WorkDeps extends EngineDeps {
  readonly database: {
    readonly tasks: EngineDeps['database']['tasks'] & Pick<Tasks, 'read' | 'touch'>
  }
  /** How late a look was, milliseconds. */
  readonly onLateness: (lateMs: number) => void
}

interface Received {
  readonly delivery: Delivery
  readonly id: string
  readonly chain: number
}

export class TaskWork {
  readonly #deps: WorkDeps
  readonly #trouble: OutageLog
  readonly #held = new Set<Delivery>()
  #received: Received[] = []
  #isReadComing = false
  /** Being worked on, with how each stood when that began. */
  readonly #running = new Map<string, Task['state']>()
  readonly #failures = new Map<string, number>()
  readonly #dueAt = new Map<string, number>()
  readonly #untouched = new Set<string>()
  #isStopped = false

  constructor(deps: WorkDeps) {
    this.#deps = deps
    this.#trouble = new OutageLog(deps.log, 'Working on tasks')
  }

  /** Messages here, worked on or about to be. */
  get held(): number {
    return this.#held.size
  }

  get submitting(): number {
    return [...this.#running.values()].filter((state) => state === 'waiting').length
  }

  receive(delivery: Delivery): void {
    const message = decodeTaskMessage(delivery.data)
    if (message === null) {
      this.#deps.log.error({ message_id: delivery.messageId }, 'Dropped malformed task message')
      return delivery.acknowledge()
    }
    this.#held.add(delivery)
    this.#received.push({ delivery, id: message.task, chain: message.chain })
    if (this.#received.length >= READ_MAX_TASKS) void this.#read()
    else if (!this.#isReadComing) {
      this.#isReadComing = true
      void this.#deps.pause(READ_LINGER_MS).then(() => this.#read())
    }
  }

  /** One task without a message, as the sweep finds it. Null: it has ended, or is worked on here already. */
  async once(task: Task): Promise<Next> {
    if (this.#running.has(task.id) || this.#isStopped) return null
    return this.#drive(task)
  }

  /** Says to NATS that what is here is still worked on. */
  keep(): void {
    for (const delivery of this.#held) delivery.keep()
  }

  /** Says to PostgreSQL that somebody looks after what is worked on here, and after what was not touched for long. */
  async touch(): Promise<void> {
    const ids = [...new Set([...this.#running.keys(), ...this.#untouched])]
    this.#untouched.clear()
    await this.#deps.database.tasks.touch(ids, this.#deps.now())
  }

  /** Takes nothing on any more; ends when what is being submitted has ended, or the bound is over. */
  async stop(boundMs: number): Promise<void> {
    this.#isStopped = true
    const until = this.#deps.now() + boundMs
    for (const { delivery } of this.#received.splice(0)) this.#release(delivery, 0)
    while (this.#running.size > 0 && this.#deps.now() < until) await this.#deps.pause(STOP_POLL_MS)
    for (const delivery of [...this.#held]) this.#release(delivery, 0)
  }

  async #read(): Promise<void> {
    this.#isReadComing = false
    const received = this.#received
    this.#received = []
    try {
      const tasks = await this.#deps.database.tasks.read([...new Set(received.map(({ id }) => id))])
      const byId = new Map(tasks.map((task) => [task.id, task]))
      for (const one of received) void this.#work(one, byId.get(one.id) ?? null)
    } catch (error) {
      this.#trouble.failed(error)
      for (const { delivery } of received) this.#release(delivery, FAULT_DELAY_MS)
    }
  }

  async #work({ delivery, id, chain }: Received, task: Task | null): Promise<void> {
    if (this.#isStopped) return this.#release(delivery, 0)
    if (task === null || isFinal(task.state) || chain < task.chain)
      return this.#finish(delivery, task ?? { id })
    if (this.#running.has(id)) return this.#release(delivery, DOUBLED_DELAY_MS)
    if (task.state === 'waiting' && this.submitting >= SUBMITS_MAX)
      return this.#release(delivery, SUBMIT_RETRY_MS)
    this.#noteLateness(id)
    try {
      const next = await this.#drive(task)
      this.#trouble.succeeded()
      if (next === null) return this.#finish(delivery, task)
      this.#release(delivery, next.delayMs)
      this.#track(this.#dueAt, id, this.#deps.now() + next.delayMs)
    } catch (error) {
      this.#trouble.failed(error)
      this.#release(delivery, FAULT_DELAY_MS)
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

  #finish(delivery: Delivery, { id }: Pick<Task, 'id'>): void {
    this.#held.delete(delivery)
    delivery.acknowledge()
    // An old message of a task that goes on in another chain must not forget for it; that costs a poll at most.
    this.#failures.delete(id)
  }

  #release(delivery: Delivery, delayMs: number): void {
    if (this.#held.delete(delivery)) delivery.release(delayMs)
  }
}
