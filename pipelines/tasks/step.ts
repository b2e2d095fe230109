/** A step of a task: does what is next in the task's state. */
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { TaskEngine } from './engine.ts'

export interface StepResult {
  /** Its current row. */
  readonly task: Task
  /** True if the upstream did not report. */
  readonly hasFailed: boolean
  /** Null for the usual delay of the kind. */
  readonly delayMs: number | null
}

export type Step = (deps: TaskEngine, task: Task) => Promise<StepResult>

export const endStep = (task: Task, more: Partial<StepResult> = {}): StepResult => ({
  task,
  hasFailed: false,
  delayMs: null,
  ...more,
})
