/** Tasks and submits as the control interface shows them. */

import { type Submit, stateOf, type Task, type TaskState, type TaskStore } from './task-book.ts'

/** Times in RFC 3339. */
export type TaskView = {
  id: string
  dialect: string
  kind: string
  model: string
  reference: string | null
  state: TaskState
  created_at: string
  /** When it ended; null while it has not. */
  ended_at: string | null
  polls: number
  cancels: number
}

export type SubmitView = {
  at: string
  dialect: string
  model: string
  reference: string | null
  /** Null where none was taken on. */
  task_id: string | null
}

export function viewOfTask(task: Task): TaskView {
  const { dialect, model, reference, atMs } = task.submit
  const isOver = Date.now() >= task.endsAtMs
  return {
    ...{ id: task.id, dialect, kind: task.kind, model, reference, state: stateOf(task) },
    created_at: new Date(atMs).toISOString(),
    ended_at: isOver ? new Date(task.endsAtMs).toISOString() : null,
    ...{ polls: task.polls, cancels: task.cancels },
  }
}

/** Oldest first; the query may name an `id`, a `reference`, a `model` or a `dialect`. */
export function taskViews(book: TaskStore, query: URLSearchParams): TaskView[] {
  return book
    .tasks()
    .map(viewOfTask)
    .filter(matching(query, ['id', 'reference', 'model', 'dialect']))
}

/** Every request for work, oldest first, refused ones too; the query may name a `reference`, a `model` or a `dialect`. */
export function submitViews(book: TaskStore, query: URLSearchParams): SubmitView[] {
  return book
    .submits()
    .map(viewOfSubmit)
    .filter(matching(query, ['reference', 'model', 'dialect']))
}

function viewOfSubmit({ atMs, dialect, model, reference, taskId }: Submit): SubmitView {
  return { at: new Date(atMs).toISOString(), dialect, model, reference, task_id: taskId }
}

function matching<Field extends string>(query: URLSearchParams, fields: readonly Field[]) {
  const wanted = fields.filter((field) => query.has(field))
  return (view: Readonly<Record<Field, string | null>>): boolean =>
    wanted.every((field) => view[field] === query.get(field))
}
