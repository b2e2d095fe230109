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

/** A request for work, whether or not a task came of it. */
export type Submit = {
  readonly atMs: number
  readonly dialect: string
  /** As it was received. */
  readonly model: string
  /** The caller's own name of the work, where the dialect has one. */
  readonly reference: string | null
  readonly directives: Directives
  taskId: string | null
}

export type NewTask = {
  /** What the provider calls it, unless the directive `id` says. */
  readonly id: string
  readonly kind: string
  /** The whole request, or its digest: two requests with the same ask for the same. */
  readonly words: string
  /** The task in the dialect's words, at whatever time of its life. */
  readonly tell: (task: Task) => object
}

export type Task = NewTask & {
  readonly submit: Submit
  readonly startsAtMs: number
  /** When it ends; never, where it is infinite. */
  endsAtMs: number
  end: TaskState
  polls: number
  cancels: number
}

/** As random as the ids of real providers: a task of an earlier run is none of this one. */
export function makeTaskId(): string {
  return randomBytes(ID_BYTES).toString('hex')
}

export function readState(task: Task, nowMs = Date.now()): TaskState {
  if (nowMs >= task.endsAtMs) return task.end
  return nowMs >= task.startsAtMs ? 'running' : 'queued'
}

/** From 0, when it was begun, to 1, when it ended. */
export function readProgress(task: Task, nowMs = Date.now()): number {
  if (nowMs >= task.endsAtMs) return 1
  if (nowMs < task.startsAtMs || task.endsAtMs === Number.POSITIVE_INFINITY) return 0
  return (nowMs - task.startsAtMs) / (task.endsAtMs - task.startsAtMs)
}

/** The fault of a poll: the directive `poll_fault`, counted for this task only. */
export function pollDirectives({ id, submit: { directives } }: Task): Record<string, string | number> | null {
  return laterFault(directives.poll_fault, directives, `poll ${id}`)
}

/** A fault that the request asked for and that strikes a later one; `tag` counts its times apart. */
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
  /** References whose look-up was answered with not found. */
  readonly #denied = new Set<string>()
  #submits: Submit[] = []

  /** Every request for work is noted, also those that no task comes of. */
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

  /** Takes work on; beyond 100,000 tasks the oldest is forgotten. */
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

  /** The request that first used a reference, and came furthest with it. */
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

  /** Ends a task that is open, now and so. */
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
