/**
 * Waits for tasks that others work on. Notifications report transitions; in case they are lost, one statement reads all
 * rows that are waited for every second.
 */
import { asyncScheduler, interval, Observable, type SchedulerLike, timer } from 'rxjs'
import type { TaskState } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { OutageLog, type PipelineLog } from '../../settlement/retrying.ts'
import type { TaskMessages } from '../worker/messages.ts'

const READ_INTERVAL_MS = 1_000
/** The most ids in one statement. */
const READ_MAX_TASKS = 1_000

/** Returns whether an upstream has accepted the task, or the task has ended. */
export const isAccepted = (state: TaskState): boolean => state !== 'waiting' && state !== 'submitting'

interface Watched {
  /** The task as it was last seen. */
  readonly task: Task
  /** False if the time ran out first. */
  readonly isReached: boolean
}

export interface TaskWatch {
  /** Emits once and completes. */
  until(task: Task, isReached: (state: TaskState) => boolean, boundMs: number): Observable<Watched>
  close(): void
}

interface WatchedTasks {
  readonly database: { readonly tasks: { read(ids: readonly string[]): Promise<Task[]> } }
  readonly messages: { readonly listen: TaskMessages['listen'] }
  readonly log: PipelineLog
  readonly scheduler?: SchedulerLike
}

interface Waiter {
  task: Task
  readonly isReached: (state: TaskState) => boolean
  readonly emit: (watched: Watched) => void
}

export function watchTasks(deps: WatchedTasks): TaskWatch {
  const { database, messages, log, scheduler = asyncScheduler } = deps
  const reading = new OutageLog(log, 'Reading tasks')
  const waiters = new Map<string, Set<Waiter>>()
  const wanted = new Set<string>()
  let isReading = false

  const show = (task: Task) => {
    for (const waiter of waiters.get(task.id) ?? []) {
      waiter.task = task
      if (waiter.isReached(task.state)) waiter.emit({ task, isReached: true })
    }
  }
  const read = async () => {
    if (isReading) return
    isReading = true
    try {
      while (wanted.size > 0) {
        const ids = [...wanted].slice(0, READ_MAX_TASKS)
        for (const id of ids) wanted.delete(id)
        for (const task of await database.tasks.read(ids)) show(task)
      }
      reading.noteSuccess()
    } catch (error) {
      // The next round reads it again, within a second.
      reading.noteFailure(error)
    } finally {
      isReading = false
    }
  }
  const readAll = () => {
    for (const id of waiters.keys()) wanted.add(id)
    if (wanted.size > 0) void read()
  }
  const stopListening = messages.listen((notes) => {
    for (const { id, state } of notes)
      for (const { isReached } of waiters.get(id) ?? []) if (isReached(state)) wanted.add(id)
    if (wanted.size > 0) void read()
  }, readAll)
  const reading$ = interval(READ_INTERVAL_MS, scheduler).subscribe(readAll)

  return {
    until: (task, isReached, boundMs) =>
      new Observable((subscriber) => {
        const emit = (watched: Watched) => {
          subscriber.next(watched)
          subscriber.complete()
        }
        if (isReached(task.state)) return emit({ task, isReached: true })
        const waiter: Waiter = { task, isReached, emit }
        const own = waiters.get(task.id) ?? new Set()
        waiters.set(task.id, own.add(waiter))
        const bound = timer(boundMs, scheduler).subscribe(() => emit({ task: waiter.task, isReached: false }))
        return () => {
          bound.unsubscribe()
          own.delete(waiter)
          if (own.size === 0) waiters.delete(task.id)
        }
      }),
    close() {
      reading$.unsubscribe()
      stopListening()
    },
  }
}
