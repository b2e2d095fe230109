/** Events of which accounts and operators are notified, by webhook and by email. */

/** Types of an account's events. */
const ACCOUNT_EVENTS = [
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
const INSTALLATION_EVENTS = ['channel.opened', 'channel.closed', 'journal.silent'] as const

/** Types of events of both: an endpoint was switched off because it failed for days. */
const ENDPOINT_EVENTS = ['webhook.disabled'] as const

export const EVENT_TYPES = [...ACCOUNT_EVENTS, ...INSTALLATION_EVENTS, ...ENDPOINT_EVENTS] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** Sent to only one endpoint, when its owner asks for it. */
export const TEST_EVENT = 'webhook.test'

/** Names the installation where else the id of an account stands. */
export const INSTALLATION = 'installation'

/** Events that owners and operators get by email unless they choose otherwise. */
export const EMAILED_EVENTS: readonly EventType[] = [
  'balance.low',
  'balance.empty',
  'budget.threshold',
  'topup.failed',
  'key.expiring',
  'channel.opened',
  'channel.closed',
  'journal.silent',
  'webhook.disabled',
]

/** Returns the types of an account's events, or of the installation's. */
export const listEvents = (accountId: string): readonly EventType[] => [
  ...(accountId === INSTALLATION ? INSTALLATION_EVENTS : ACCOUNT_EVENTS),
  ...ENDPOINT_EVENTS,
]

/** PostgreSQL NOTIFY channel without a payload: an event has to be dispatched, or a delivery is due. */
export const EVENTS_CHANNEL = 'tollgate_events'

/** An event that is being recorded. */
export interface NewEvent {
  readonly type: EventType
  /** Null: of the installation. */
  readonly accountId: string | null
  /** Id of the task, key, payment, budget, account, channel or journal that it is about. */
  readonly subjectId: string
  /** Names what is crossed once: an event of the same name is recorded once in 400 days. Null: each one counts. */
  readonly crossing: string | null
  /** Fields for receivers: names in snake_case, amounts as decimal texts of credits, instants in RFC 3339. No secrets. */
  readonly data: Readonly<Record<string, unknown>>
}

/** An event of the installation as its operators see it. */
export interface OperatorAlert {
  readonly id: string
  readonly type: EventType
  readonly subjectId: string
  readonly data: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  /** Null: nobody has. */
  readonly acknowledgedAt: Date | null
  readonly acknowledgedBy: string | null
  readonly acknowledgement: string | null
}

export interface NotifiedEvent {
  readonly id: string
  readonly type: EventType | typeof TEST_EVENT
  /** `INSTALLATION`, or an account. */
  readonly accountId: string
  readonly createdAt: Date
  readonly data: Readonly<Record<string, unknown>>
}
