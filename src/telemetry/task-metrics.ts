/** Metrics of work on tasks: attempts at upstreams, and the lateness of polls. */
import { emptyHistogram, observe, toSamples } from './histogram.ts'
import { countBy, type Register } from './register.ts'

/** Upper bounds in seconds. A poll should come within its task's interval. */
const LATENESS_BOUNDS_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const
const MS_PER_SECOND = 1_000

export interface TaskMeters {
  /** Counts an attempt at a submit by its outcome. */
  countSubmit(outcome: string): void
  /** Counts a poll of a task by its outcome. */
  countPoll(outcome: string): void
  /** Counts a channel that delivered something else than was requested. */
  countExcess(): void
  /** Counts an upstream's answer for a task that had ended. */
  countDiscard(): void
  observeLateness(lateMs: number): void
}

export function registerTasks(register: Register): TaskMeters {
  let beyond = 0
  let discarded = 0
  const lateness = emptyHistogram(LATENESS_BOUNDS_SECONDS)
  const outcomes = (name: string, help: string) => countBy(register, 'outcome', name, help)
  const countSubmit = outcomes('tollgate_task_submits_total', 'Attempts at submitting tasks to upstreams.')
  const countPoll = outcomes('tollgate_task_polls_total', 'Polls of tasks that upstreams work on.')
  register(
    'tollgate_task_beyond_order_total',
    'Results that are not what was requested: longer, larger, in greater number, or with files of another kind.',
    'counter',
    () => [{ labels: {}, value: beyond }],
  )
  register(
    'tollgate_task_discarded_total',
    'Answers of upstreams that came after their task had ended: what they make is discarded.',
    'counter',
    () => [{ labels: {}, value: discarded }],
  )
  const name = 'tollgate_task_poll_lateness_seconds'
  const help = 'How much later than planned tasks were polled.'
  register(name, help, 'histogram', () =>
    lateness.counts.some((count) => count > 0) ? toSamples(name, LATENESS_BOUNDS_SECONDS, lateness, {}) : [],
  )
  return {
    countSubmit,
    countPoll,
    countExcess: () => void beyond++,
    countDiscard: () => void discarded++,
    observeLateness: (lateMs) => observe(LATENESS_BOUNDS_SECONDS, lateness, lateMs / MS_PER_SECOND),
  }
}
