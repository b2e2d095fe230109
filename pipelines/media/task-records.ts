/** Reads one task, or a list of tasks, for their account. */
import { Failure } from '../../schemas/failure.ts'
import { ALL_STATUSES, taskListQuery } from '../../schemas/tasks/list.ts'
import { TASK_RULES, TASK_STATES, type TaskKind, type TaskState } from '../../schemas/tasks/task.ts'
import type { Task, TaskListQuery } from '../../src/postgres/tasks/types.ts'
import type { Caller } from '../calls/authenticate.ts'
import { readQuery } from '../calls/query.ts'

export interface TaskFinder {
  find(accountId: string, kind: TaskKind, id: string): Promise<Task | null>
}

export interface TaskRecords extends TaskFinder {
  list(query: TaskListQuery): Promise<{ tasks: Task[]; hasMore: boolean }>
}

const MS_PER_SECOND = 1000

export const toEpochSeconds = (ms: number): number => Math.floor(ms / MS_PER_SECOND)

/** The same error for a missing task and one of another account, so that nobody can tell them apart. */
export const taskNotFound = (kind: TaskKind): Failure =>
  new Failure('not_found', `There is no ${kind} with this id.`)

/** @throws Failure `not_found`, `service_unavailable` */
export async function findTask(
  records: TaskFinder,
  { known }: Caller,
  kind: TaskKind,
  id: string,
): Promise<Task> {
  // PostgreSQL cannot store NUL.
  const isId = !id.includes('\0')
  const task = isId ? await records.find(known.account.id, kind, id).catch(throwUnavailable) : null
  if (task === null) throw taskNotFound(kind)
  return task
}

function listStates(kind: TaskKind, words: readonly string[]): readonly TaskState[] | null {
  if (words.length === 0 || words.includes(ALL_STATUSES)) return null
  const { outward } = TASK_RULES[kind]
  return TASK_STATES.filter((state) => words.includes(outward[state]))
}

/** The page of a list. The cursor is the id of the last task: ids increase with time. */
interface TaskPage {
  readonly has_more: boolean
  readonly next_cursor: string | null
}

/** @throws Failure `invalid_request`, `service_unavailable` */
export async function listTasks(
  records: TaskRecords,
  { known, request }: Caller,
  kind: TaskKind,
): Promise<{ tasks: readonly Task[]; page: TaskPage }> {
  const { cursor, limit, status } = readQuery(taskListQuery(kind), request.query)
  const states = listStates(kind, status)
  const before = cursor === '' ? null : cursor
  const found = await records
    .list({ accountId: known.account.id, kind, states, before, limit })
    .catch(throwUnavailable)
  const next_cursor = found.hasMore ? (found.tasks.at(-1)?.id ?? null) : null
  return { tasks: found.tasks, page: { has_more: found.hasMore, next_cursor } }
}

export function throwUnavailable(error: Error): never {
  throw new Failure('service_unavailable', 'Tasks cannot be read at the moment. Try again in a minute.', {
    internal: `tasks: ${error.message}`,
  })
}
