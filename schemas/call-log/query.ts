/** The parameters of `GET /v1/logs`. See docs/api-rules.md, "Call log list". */

import { z } from 'zod'
import { queryNumber } from '../query.ts'
import { logRow } from './columns.ts'
import {
  currency,
  LOG_CSV_MAX_ROWS,
  LOG_LIMIT_DEFAULT_ROWS,
  LOG_LIMIT_MAX_ROWS,
  LOG_PERIODS,
  type UnitType,
  unitType,
} from './row.ts'
import { CALL_STATUSES, UNIT_TYPES } from './words.ts'

export const LOG_SCOPES = ['key', 'account'] as const
export type LogScope = (typeof LOG_SCOPES)[number]
const LOG_ORDERS = ['desc', 'asc'] as const
export type LogOrder = (typeof LOG_ORDERS)[number]
const LOG_FORMATS = ['json', 'csv'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]
const LOG_INCLUDES = ['attempts', 'in_flight', 'none'] as const

/** The most values of a comma list. */
const LOG_LIST_MAX_VALUES = 100
/** No id, model name or error code is longer. */
const LOG_TEXT_MAX_CHARS = 200
const LOG_CURSOR_MAX_CHARS = 512

/** One end of the window: `2026-01-31` is a whole day, anything else an instant. Epoch milliseconds. */
export interface WindowEnd {
  readonly kind: 'day' | 'instant'
  readonly at: number
}

const quote = (input: unknown): string => JSON.stringify(input)

export const makeWordSchema = <const T extends readonly string[]>(allowed: T) =>
  z.enum(allowed, { error: ({ input }) => `${quote(input)} is not one of ${allowed.join(', ')}` })

const text = z.string().max(LOG_TEXT_MAX_CHARS, `must have at most ${LOG_TEXT_MAX_CHARS} characters`)

/** A comma list; empty items are left out. */
export const commaList = <T extends z.ZodType<string, string>>(item: T) =>
  z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .pipe(z.array(item).max(LOG_LIST_MAX_VALUES, `must not list more than ${LOG_LIST_MAX_VALUES} values`))

const isoDay = z.iso.date()
const isoInstant = z.iso.datetime({ offset: true })
/** Behind the milliseconds there is something left: the log's instants are whole milliseconds. */
const SUB_MILLISECOND = /\.\d{3}\d*[1-9]/

/** Restores a plus sign: an unescaped one arrives as a space. */
const restorePlus = (value: string): string => value.replace(/ (\d\d:\d\d)$/, '+$1')

const readWindowEnd = z.string().transform((value, context): WindowEnd => {
  if (isoDay.safeParse(value).success) return { kind: 'day', at: Date.parse(value) }
  const instant = isoInstant.safeParse(restorePlus(value.toUpperCase()))
  if (instant.success) {
    // Rounded up: an end between two milliseconds parts the rows exactly as the next one does.
    return {
      kind: 'instant',
      at: Date.parse(instant.data) + (SUB_MILLISECOND.test(instant.data) ? 1 : 0),
    }
  }
  context.addIssue({
    code: 'custom',
    message: `${quote(value)} is neither a date like 2026-01-31 nor an RFC 3339 time like 2026-01-31T12:00:00Z`,
  })
  return z.NEVER
})
/** Each with its type: generators of clients read alternatives one by one. */
const WINDOW_END = [
  { type: 'string', format: 'date' },
  { type: 'string', format: 'date-time' },
]
/** One end of a window of time, as a parameter. */
export const windowEnd = readWindowEnd.meta({ anyOf: WINDOW_END })

export const windowFields = {
  from: windowEnd.optional().describe('YYYY-MM-DD or RFC 3339; together with to.'),
  to: windowEnd.optional().describe('A date is included whole; a time is the first that is not included.'),
}
/** For the endpoints where an empty value counts as absent. */
export const emptyableWindowFields = {
  from: windowFields.from.meta({ anyOf: [...WINDOW_END, { type: 'string', const: '' }] }),
  to: windowFields.to.meta({ anyOf: [...WINDOW_END, { type: 'string', const: '' }] }),
}

/** As the call log has it. */
export const sessionId = text

/** An absent parameter without a default is undefined; unknown parameters are ignored. */
export const logQuery = z.object({
  scope: makeWordSchema(LOG_SCOPES)
    .default('key')
    .describe('key: only this key; account: the whole account, if the key may read it.'),
  key_id: text.optional().describe('Only calls of this key; with scope=account.'),
  period: z
    .string()
    .meta({ enum: LOG_PERIODS })
    .optional()
    .describe(`${LOG_PERIODS.join(', ')}; ignored if from and to are given.`),
  ...emptyableWindowFields,
  model: commaList(text).optional().describe('Exact ids, separated by commas.'),
  status: commaList(makeWordSchema(CALL_STATUSES))
    .optional()
    .describe(`${CALL_STATUSES.join(', ')}; separated by commas.`),
  unit_type: commaList(makeWordSchema<typeof UNIT_TYPES>(UNIT_TYPES) as z.ZodType<UnitType, string>)
    .optional()
    .describe(`${UNIT_TYPES.join(', ')}; separated by commas.`),
  error_code: commaList(text).optional().describe('Exact codes, separated by commas.'),
  ref: text.optional().describe('A request id or a task id, of all time: period, from and to do not count.'),
  session_id: sessionId.optional().describe('The session that the client named, exactly.'),
  order: makeWordSchema(LOG_ORDERS).optional().describe("Default: the cursor's order, else desc."),
  // The most depends on the format.
  limit: queryNumber(1, LOG_CSV_MAX_ROWS)
    .optional()
    .describe(
      `1 to ${LOG_LIMIT_MAX_ROWS}, default ${LOG_LIMIT_DEFAULT_ROWS}; as CSV 1 to ${LOG_CSV_MAX_ROWS}, which is the default.`,
    ),
  cursor: z
    .string()
    .max(LOG_CURSOR_MAX_CHARS, 'is not a cursor of this log')
    .optional()
    .describe('next_cursor of the page before, as it came.'),
  include: commaList(makeWordSchema(LOG_INCLUDES))
    .default(['attempts'])
    .describe(`${LOG_INCLUDES.join(', ')}; separated by commas; default attempts.`),
  format: makeWordSchema(LOG_FORMATS)
    .optional()
    .describe(`${LOG_FORMATS.join(', ')}; default: what the Accept header prefers, else json.`),
})
export type LogQuery = z.infer<typeof logQuery>

export const logPeriodParameter = makeWordSchema(LOG_PERIODS)

/** The most unfinished jobs in a page: the newest. */
export const IN_FLIGHT_MAX_JOBS = 100

/** A job that has no row yet: it gets one when it settles. */
const jobInFlight = z.object({
  object: z.literal('log.in_flight'),
  task_id: z.string(),
  request_id: z.string(),
  key_id: z.string(),
  key_name: z.string(),
  key_prefix: z.string(),
  model: z.string(),
  unit_type: unitType,
  status: z.string().describe('As the poll of the task has it.'),
  estimate: z.string().describe('What is held: credits, a decimal string.'),
  submitted_at: z.string(),
})
export type JobInFlight = z.infer<typeof jobInFlight>

/** The answer of `GET /v1/logs`. */
export const logPage = z.object({
  object: z.literal('list'),
  currency,
  scope: z.enum(LOG_SCOPES),
  period_from: z.string(),
  period_to: z.string(),
  data: z.array(logRow),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
  in_flight: z
    .array(jobInFlight)
    .optional()
    .describe(
      `Unfinished asynchronous jobs that the key may see, at most ${IN_FLIGHT_MAX_JOBS}, the newest first: on the first ` +
        'page, where `include` asks for them. `key_id`, `model`, `unit_type`, `ref` and `session_id` narrow them, the window ' +
        'does not. ' +
        'Absent where nobody can say at the moment; empty where there are none.',
    ),
})
export type LogPage = z.infer<typeof logPage>
