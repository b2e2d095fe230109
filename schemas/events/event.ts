/**
 * The message catalog: what travels between the processes of the service, on which stream and subject.
 * A message carries ids and facts that never change; the row in PostgreSQL is the truth.
 */
import { z } from 'zod'
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

/** Core NATS subject (no store): asks every gateway process to book what ended there, and to answer then. */
export const BOOK_SUBJECT = 'tollgate.book'

/** A bigint of 1e-8 credit, printed in decimal digits. */
const units = z.string().regex(/^-?\d+$/)

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
