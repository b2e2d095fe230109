/** Events of which accounts and operators are notified, by webhook and by email. */

/** Types of an account's events. */
export const ACCOUNT_EVENTS = [
  'task.succeeded',
  'task.failed',
  'balance.low',
  'balance.empty',
  'budget.threshold',
  'topup.succeeded',
  'topup.failed',
  'key.expiring',
  'key.revoked',
] as const

/** Types of the installation's events, for operators. */
export const INSTALLATION_EVENTS = ['channel.opened', 'channel.closed'] as const

export const EVENT_TYPES = [...ACCOUNT_EVENTS, ...INSTALLATION_EVENTS] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** PostgreSQL NOTIFY channel without a payload: the outbox has an event to dispatch. */
export const EVENTS_CHANNEL = 'tollgate_events'

/** An event that is being recorded. */
export interface NewEvent {
  readonly type: EventType
  /** Null: of the installation. */
  readonly accountId: string | null
  /** Id of the task, key, payment, budget, account or channel that it is about. */
  readonly subjectId: string
  /** Names what is crossed once: an event of the same name is recorded once, for ever. Null: each one counts. */
  readonly crossing: string | null
  /** Fields for receivers: names in snake_case, amounts as decimal texts of credits, instants in RFC 3339. No secrets. */
  readonly data: Readonly<Record<string, unknown>>
}
