/** What lists of tasks are asked by. Source: specification, "Sizes and bounds" and the list of each endpoint. */
import { z } from 'zod'
import { TASK_RULES, type TaskKind } from './task.ts'

export const TASK_LIST_DEFAULT = 30
export const TASK_LIST_MAX = 100
/** In the place of a status: every one. */
export const ALL_STATUSES = 'all'

/** The words in which a kind's tasks tell how they are, each once. */
export const outwardStatuses = (kind: TaskKind): readonly string[] => [
  ...new Set(Object.values(TASK_RULES[kind].outward)),
]

/** The query of a list of this kind: `limit`, and `status` as a comma list. */
export function taskListQuery(kind: TaskKind) {
  const words = [...outwardStatuses(kind), ALL_STATUSES]
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
      .prefault(ALL_STATUSES)
      .describe(`Comma-separated: ${words.join(', ')}. Default: all.`),
  })
}
