/** A step on the way of a task: it takes the task in one state, and does what is next in that state. */
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { TaskEngine } from './engine.ts'

export interface StepResult {
  /** Its current row. */
  readonly task: Task
  /** The upstream did not report. */
  readonly hasFailed: boolean
  /** Null: as the kind is polled. */
  readonly delayMs: number | null
}

export type Step = (deps: TaskEngine, task: Task) => Promise<StepResult>

export const endStep = (task: Task, more: Partial<StepResult> = {}): StepResult => ({
  task,
  hasFailed: false,
  delayMs: null,
  ...more,
})
