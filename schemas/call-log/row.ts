/** The call log: one row for every call of a known account. See docs/api-rules.md, "Call log rows". */
import { z } from 'zod'

export const CALL_STATUSES = ['success', 'error', 'interrupted', 'rejected'] as const
export const callStatus = z.enum(CALL_STATUSES)
export type CallStatus = z.infer<typeof callStatus>

export const UNIT_TYPES = [
  'image',
  'video',
  'music',
  'audio',
  'avatar',
  'voice',
  'search',
  'transcript',
  'chat',
] as const
export const unitType = z.enum(UNIT_TYPES)
export type UnitType = z.infer<typeof unitType>

/** One try at an upstream. Times in milliseconds. */
export const attemptRow = z.object({
  seq: z.int().min(1),
  created_at: z.string(),
  latency_ms: z.int().min(0),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
})
export type AttemptRow = z.infer<typeof attemptRow>

/** One row as `GET /v1/logs` gives it. */
export const logRow = z.object({
  object: z.literal('log'),
  id: z.int().positive(),
  created_at: z.string(),
  submitted_at: z.string(),
  key_id: z.string(),
  key_name: z.string(),
  key_prefix: z.string(),
  model: z.string(),
  status: callStatus,
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int(),
  cache_write_tokens: z.int(),
  reasoning_tokens: z.int(),
  server_tool_calls: z.int(),
  unit_count: z.string().nullable(),
  unit_type: unitType.nullable(),
  /** Credits, a decimal string. */
  cost: z.string(),
  latency_ms: z.int(),
  request_id: z.string(),
  task_id: z.string().nullable(),
  result_urls: z.array(z.string()),
  result_expires_at: z.string().nullable(),
  /** 0: refused before any upstream was called. null: not determined. */
  attempts_count: z.int().nullable(),
  /** `attempts_count` of them. A call's only attempt takes as long as the call. */
  attempts: z.array(attemptRow).optional(),
  /** More than 1 where refused calls share the row. */
  call_count: z.int().positive(),
})
export type LogRow = z.infer<typeof logRow>

export const LOG_PERIODS = ['today', '7d', '30d', 'this_month', 'all'] as const
export type LogPeriod = (typeof LOG_PERIODS)[number]

export const LOG_LIMIT_DEFAULT_ROWS = 50
export const LOG_LIMIT_MAX_ROWS = 200
/** As CSV, in one answer. */
export const LOG_CSV_MAX_ROWS = 10_000
export const CURRENCY = 'points' as const
export const currency = z
  .literal(CURRENCY)
  .describe('The word of this interface for credits: one point is one credit.')
