/** Query parameters of lists of tasks. */
import { z } from 'zod'
import { commaList, makeWordSchema } from '../call-log/query.ts'
import { queryNumber } from '../query.ts'
import { TASK_RULES, type TaskKind } from './task.ts'

export const TASK_LIST_DEFAULT = 30
export const TASK_LIST_MAX = 100
/** In the place of a status: every one. */
export const ALL_STATUSES = 'all'

/** Returns the statuses of a kind's tasks, each once. */
export const listOutwardStatuses = (kind: TaskKind): readonly string[] => [
  ...new Set(Object.values(TASK_RULES[kind].outward)),
]

/** Returns the schema of a list of tasks. */
export const toTaskListSchema = <Task extends z.ZodType>(task: Task) =>
  z.object({
    object: z.literal('list'),
    data: z.array(task).describe('The newest first.'),
    has_more: z.boolean(),
    next_cursor: z
      .string()
      .nullable()
      .describe('Passed back as cursor, it asks for the next page; null on the last.'),
  })

/**
 * Returns the query of a list of this kind: `limit`, `status` as a comma list, and the `cursor` of the page before.
 */
export function taskListQuery(kind: TaskKind) {
  const words = [...listOutwardStatuses(kind), ALL_STATUSES]
  const { idPrefix } = TASK_RULES[kind]
  return z.object({
    cursor: z
      .string()
      .regex(new RegExp(`^(${idPrefix}_[0-9A-Z]{26})?$`), 'must be the next_cursor of a page of this list')
      .prefault('')
      .describe('next_cursor of the page before; empty for the first page.'),
    limit: queryNumber(1, TASK_LIST_MAX)
      .prefault(String(TASK_LIST_DEFAULT))
      .describe(`How many tasks to list at most, 1 to ${TASK_LIST_MAX}, the newest first.`),
    status: commaList(makeWordSchema(words))
      .prefault(ALL_STATUSES)
      .describe(`Comma-separated: ${words.join(', ')}. Default: all.`),
  })
}
