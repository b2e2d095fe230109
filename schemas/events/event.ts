/**
 * The message catalog: what travels between the processes of the service, on which stream and subject.
 * A message carries ids and facts that never change; the row in PostgreSQL is the truth.
 */
import { z } from 'zod'
import { attemptRow, callStatus, unitType } from '../call-log/row.ts'
import { taskState } from '../tasks/task.ts'

/** JetStream stream of settlements on their way from the gateways' journals to PostgreSQL. */
export const SETTLEMENT_STREAM = 'TOLLGATE_SETTLEMENTS'
/** One subject a journal: `tollgate.settlements.<journal id>`. */
export const SETTLEMENT_SUBJECT = 'tollgate.settlements'
/** Core NATS subject (no store) of settlements that the stream does not take: `tollgate.direct_settlements.<message id>`. */
export const DIRECT_SUBJECT = 'tollgate.direct_settlements'
/** Durable consumer that all settlers share. */
export const SETTLEMENT_CONSUMER = 'settler'
/** JetStream stream of open tasks: each has a message that comes back until the task has ended. */
export const TASK_STREAM = 'TOLLGATE_TASKS'
export const TASK_SUBJECT = 'tollgate.tasks'
/** Durable consumer that all `tasks` processes share. */
export const TASK_CONSUMER = 'tasks'
/** JetStream stream of deliveries that are due: a message for each attempt. */
export const DELIVERY_STREAM = 'TOLLGATE_DELIVERIES'
export const DELIVERY_SUBJECT = 'tollgate.deliveries'
/** Durable consumer that all `tasks` processes share. */
export const DELIVERY_CONSUMER = 'deliveries'
/** Core NATS subject (no store): notifications of transitions, for processes that wait for tasks. */
export const TASK_CHANGES_SUBJECT = 'tollgate.task_news'
/** Core NATS subject (no store): notifications of bookings, for every gateway process. */
export const BOOKED_SUBJECT = 'tollgate.booked'

const tokens = z.int().min(0).default(0)
const text = z.string().nullable().default(null)
/** A bigint of 1e-8 credit, printed in decimal digits. */
const units = z.string().regex(/^-?\d+$/)

/**
 * One ended call. Written to the journal before anything else, booked exactly once by its `request_id`. An absent
 * field is 0, null or empty, as most are for most calls. Instants are epoch milliseconds; amounts are strings that
 * count 1e-8 credit.
 */
export const settlement = z.object({
  request_id: z.string(),
  account_id: z.string(),
  key_id: z.string(),
  /** Canonical model id; empty where the call was refused before its model was known. */
  model: z.string(),
  /** Client protocol, such as `chat-completions`. */
  protocol: z.string(),
  stream: z.boolean(),
  status: callStatus,
  error_code: text,
  error_message: text,
  input_tokens: tokens,
  output_tokens: tokens,
  cached_tokens: tokens,
  cache_write_tokens: tokens,
  reasoning_tokens: tokens,
  server_tool_calls: tokens,
  unit_count: text,
  unit_type: unitType.nullable().default(null),
  cost: units,
  /** The pre-charge estimate that admitted the call; "0" for a rejected one. */
  estimate: units,
  /** Source of the token counts. */
  usage_source: z.enum(['upstream', 'estimate', 'none']),
  submitted_at: z.int(),
  created_at: z.int(),
  latency_ms: z.int().min(0),
  /** Time to the first byte for the client; null when none was sent. */
  ttfb_ms: z.int().min(0).nullable().default(null),
  channel_id: text,
  attempts_count: z.int().min(0).nullable().default(null),
  /** Empty when the first attempt did it. */
  attempts: z.array(attemptRow).default([]),
  /** The detail of `schemas/call-log/call-detail.ts`, as JSON text, which is not read on the way. */
  detail: z.string().optional(),
  /** The task of its charge and its hold; absent, as the next two, where nothing outlived its request. */
  task_id: z.string().optional(),
  /** Links to the results. */
  result_urls: z.array(z.string()).optional(),
  /** When they stop opening; left out: never. */
  result_expires_at: z.int().optional(),
  /** Number of refused calls in the row; absent: one. */
  call_count: z.int().min(1).optional(),
  /** The price that the operator pays, by the cost of its channel; absent where that is not known. */
  upstream_cost: units.optional(),
})
export type Settlement = z.infer<typeof settlement>

/** Of a call that is not billed by tokens, or used none. */
export const NO_TOKENS = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  server_tool_calls: 0,
} as const satisfies Partial<Settlement>

/** A JetStream message of `SETTLEMENT_STREAM` is settlements as JSON, one a line; its message id is `<journal>.<batch>`. */
export const SETTLEMENT_SEPARATOR = '\n'

/** Sent on `BOOKED_SUBJECT` after each commit. Amounts are strings that count 1e-8 credit. */
export const booked = z.object({
  /** Message ids (`<journal>.<batch>`) that are now in PostgreSQL. */
  batches: z.array(z.string()),
  /** Totals after the commit; of a capped key as well, under the key's id. */
  wallets: z.array(
    z.object({
      account_id: z.string(),
      balance: units,
      held: units,
      used: units,
      version: units,
      reserved: units.optional(),
    }),
  ),
})

/** A message of `TASK_STREAM`. One with another chain than the row's is void. */
export const taskMessage = z.object({ task: z.string(), chain: z.int().min(0) })
export type TaskMessage = z.infer<typeof taskMessage>

/** A message of `DELIVERY_STREAM`. */
export const deliveryMessage = z.object({ delivery: z.string() })
export type DeliveryMessage = z.infer<typeof deliveryMessage>

/** Sent on `TASK_CHANGES_SUBJECT` after each move. */
export const taskNotification = z.object({
  tasks: z.array(z.object({ id: z.string(), version: z.int(), state: taskState })),
})

/** PostgreSQL NOTIFY channel; payload `key:<id>`, `account:<id>`, `agent:<id>` or `wallet:<account id>`. */
export const CHANGES_CHANNEL = 'tollgate_changes'
