/** Tasks as their account looks at them: one of them, and the list. Source: specification, the tasks of each endpoint. */
import { z } from 'zod'
import { Failure } from '../../schemas/failure.ts'
import { TASK_RULES, TASK_STATES, type TaskKind, type TaskState } from '../../schemas/task.ts'
import type { Task, Tasks } from '../../src/postgres/task-types.ts'
import { readQuery } from '../query.ts'
import type { Caller } from '../stages/authenticate.ts'

/** Specification, "Sizes and bounds". */
export const TASK_LIST_DEFAULT = 30
export const TASK_LIST_MAX = 100
const ALL = 'all'

export interface TaskRecordsDeps {
  readonly tasks: Pick<Tasks, 'findTask' | 'listTasks'>
}

/** What stands behind the last slash of a path. */
export const lastStep = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** The same for a task that is not there and for one of another account: so neither is told from the other. */
export const taskNotFound = (): Failure => new Failure('not_found', 'There is no such task.')

/** @throws Failure `not_found`, `service_unavailable` */
export async function findTask(
  { tasks }: TaskRecordsDeps,
  { known }: Caller,
  kind: TaskKind,
  id: string,
): Promise<Task> {
  const task = await tasks.findTask(known.account.id, kind, id).catch(unavailable)
  if (task === null) throw taskNotFound()
  return task
}

/** The words in which a kind's tasks tell how they are, each once. */
export const outwardStatuses = (kind: TaskKind): readonly string[] => [
  ...new Set(Object.values(TASK_RULES[kind].outward)),
]

function statesOf(kind: TaskKind, words: readonly string[]): readonly TaskState[] | null {
  if (words.length === 0 || words.includes(ALL)) return null
  const { outward } = TASK_RULES[kind]
  return TASK_STATES.filter((state) => words.includes(outward[state]))
}

/** The query of a list of this kind: `limit`, and `status` as a comma list. */
export function taskListQuery(kind: TaskKind) {
  const words = [...outwardStatuses(kind), ALL]
  return z.object({
    limit: z
      .string()
      .refine(
        (text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= TASK_LIST_MAX,
        `must be a whole number from 1 to ${TASK_LIST_MAX}`,
      )
      .transform(Number)
      .prefault(String(TASK_LIST_DEFAULT))
      .describe(`At most so many, 1 to ${TASK_LIST_MAX}; the newest.`),
    status: z
      .string()
      .transform((text) => text.split(',').map((word) => word.trim()))
      .pipe(z.array(z.enum(words, { error: ({ input }) => `"${input}" is not one of ${words.join(', ')}` })))
      .prefault(ALL)
      .describe(`Comma-separated: ${words.join(', ')}. Default: all.`),
  })
}

/** @throws Failure `invalid_request`, `service_unavailable` */
export async function listTasks(
  { tasks }: TaskRecordsDeps,
  { known, exchange }: Caller,
  kind: TaskKind,
): Promise<{ tasks: Task[]; hasMore: boolean }> {
  const { limit, status } = readQuery(taskListQuery(kind), exchange.query)
  const states = statesOf(kind, status)
  return tasks.listTasks({ accountId: known.account.id, kind, states, limit }).catch(unavailable)
}

export function unavailable(error: Error): never {
  throw new Failure('service_unavailable', 'Tasks cannot be read at the moment. Try again in a minute.', {
    internal: `tasks: ${error.message}`,
  })
}
