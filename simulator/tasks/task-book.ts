/**
 * Work that outlives its request, as the simulated provider keeps it: every task goes from queued to running to its end
 * only by the clock, as its directives say, so that nothing has to be done for one that nobody asks about.
 */

import { randomBytes } from 'node:crypto'
import type { Directives, Outcome } from '../directives/grammar.ts'

const MAX_TASKS = 100_000
const MAX_SUBMITS = 200_000
const DEFAULT_DELAY_MS = 1_200
const DEFAULT_QUEUE_MS = 300
const ID_BYTES = 16

export type TaskState =
  | 'queued'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'moderated'
  | 'expired'
  | 'cancelled'
  /** One that no caller can know. */
  | 'unknown'

const ENDS: Readonly<Record<Exclude<Outcome, 'stuck' | 'refuse'>, TaskState>> = {
  success: 'succeeded',
  fail: 'failed',
  moderation: 'moderated',
  expire: 'expired',
  cancel: 'cancelled',
  unknown_state: 'unknown',
}

/** A request for work, whether or not it became a task. */
export type Submit = {
  readonly atMs: number
  readonly dialect: string
  /** The model's name as received. */
  readonly model: string
  /** The caller's name for the work, if the dialect has one. */
  readonly reference: string | null
  readonly directives: Directives
  taskId: string | null
}

export type NewTask = {
  /** The provider's id for it, unless the directive `id` names one. */
  readonly id: string
  readonly kind: string
  /** The whole request or its digest, which tells whether two requests are the same. */
  readonly words: string
  /** Prints the task in the dialect, at any time. */
  readonly tell: (task: Task) => object
}

export type Task = NewTask & {
  readonly submit: Submit
  readonly startsAtMs: number
  /** When it ends; infinite if never. */
  endsAtMs: number
  end: TaskState
  polls: number
  cancels: number
}

/** Returns a random id, as of real providers: tasks of an earlier run are unknown. */
export function makeTaskId(): string {
  return randomBytes(ID_BYTES).toString('hex')
}

export function readState(task: Task, nowMs = Date.now()): TaskState {
  if (nowMs >= task.endsAtMs) return task.end
  return nowMs >= task.startsAtMs ? 'running' : 'queued'
}

/** Returns the progress from 0 at its start to 1 at its end. */
export function readProgress(task: Task, nowMs = Date.now()): number {
  if (nowMs >= task.endsAtMs) return 1
  if (nowMs < task.startsAtMs || task.endsAtMs === Number.POSITIVE_INFINITY) return 0
  return (nowMs - task.startsAtMs) / (task.endsAtMs - task.startsAtMs)
}

/** Returns the fault of a poll, the directive `poll_fault`, counted for this task only. */
export function pollDirectives({ id, submit: { directives } }: Task): Record<string, string | number> | null {
  return laterFault(directives.poll_fault, directives, `poll ${id}`)
}

/** Returns a requested fault that strikes a later request; `tag` separates its count. */
export function laterFault(
  fault: string | undefined,
  { times }: Directives,
  tag: string,
): Record<string, string | number> | null {
  if (fault === undefined) return null
  return { fault, tag, ...(times === undefined ? {} : { times }) }
}

export class TaskStore {
  readonly #tasks = new Map<string, Task>()
  readonly #byReference = new Map<string, Submit>()
  /** References whose lookup was answered with not found. */
  readonly #denied = new Set<string>()
  #submits: Submit[] = []

  /** Records every request for work, also those without a task. */
  recordSubmit(submit: Omit<Submit, 'atMs' | 'taskId'>): Submit {
    const noted: Submit = { ...submit, atMs: Date.now(), taskId: null }
    if (this.#submits.length >= MAX_SUBMITS) this.#submits = this.#submits.slice(MAX_SUBMITS / 2)
    this.#submits.push(noted)
    if (noted.reference !== null) {
      const first = this.#byReference.get(noted.reference)
      if (first?.taskId === undefined || first.taskId === null) this.#byReference.set(noted.reference, noted)
    }
    return noted
  }

  /** Opens a task; beyond 100,000 tasks the oldest is forgotten. */
  open(submit: Submit, task: NewTask): Task {
    const { delay = DEFAULT_DELAY_MS, queue, outcome = 'success', id } = submit.directives
    const queueMs = queue ?? Math.min(DEFAULT_QUEUE_MS, delay / 2)
    const isEndless = outcome === 'stuck' || outcome === 'refuse'
    const opened: Task = {
      ...task,
      id: this.#freeId(id ?? task.id),
      submit,
      startsAtMs: submit.atMs + queueMs,
      endsAtMs: isEndless ? Number.POSITIVE_INFINITY : submit.atMs + Math.max(delay, queueMs),
      end: isEndless ? 'running' : ENDS[outcome],
      polls: 0,
      cancels: 0,
    }
    if (this.#tasks.size >= MAX_TASKS) this.#forget(this.#tasks.values().next().value as Task)
    this.#tasks.set(opened.id, opened)
    submit.taskId = opened.id
    return opened
  }

  find(dialect: string, id: string): Task | null {
    const task = this.#tasks.get(id)
    return task?.submit.dialect === dialect ? task : null
  }

  /** Returns the first request with a reference, preferably one that became a task. */
  findSubmit(dialect: string, reference: string): Submit | null {
    const submit = this.#byReference.get(reference)
    return submit?.dialect === dialect ? submit : null
  }

  forgetSubmit(reference: string): void {
    if (this.#denied.size >= MAX_TASKS) this.#denied.delete(this.#denied.values().next().value ?? '')
    this.#denied.add(reference)
  }

  wasDenied(reference: string): boolean {
    return this.#denied.has(reference)
  }

  /** Ends an open task now, in this state. */
  end(task: Task, state: TaskState): void {
    if (Date.now() >= task.endsAtMs) return
    task.endsAtMs = Date.now()
    task.end = state
  }

  /** Oldest first. */
  tasks(): Task[] {
    return [...this.#tasks.values()]
  }

  submits(): readonly Submit[] {
    return this.#submits
  }

  clear(): void {
    this.#tasks.clear()
    this.#byReference.clear()
    this.#denied.clear()
    this.#submits = []
  }

  #forget(task: Task): void {
    this.#tasks.delete(task.id)
    if (task.submit.reference !== null) this.#byReference.delete(task.submit.reference)
  }

  #freeId(wanted: string): string {
    let id = wanted
    for (let number = 2; this.#tasks.has(id); number += 1) id = `${wanted}-${number}`
    return id
  }
}
