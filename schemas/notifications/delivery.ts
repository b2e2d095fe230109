/** Deliveries: one event to one receiver, or a mail of the service to a person. */
import type { Locale } from '../accounts/people.ts'
import type { NotifiedEvent } from './event.ts'

export const DELIVERY_STATES = ['waiting', 'delivered', 'failed'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** One try of a delivery, as it is kept. */
export interface Attempt {
  /** RFC 3339. */
  readonly at: string
  readonly duration_ms: number
  /** The headers that were sent; null where nothing was, and for an email. */
  readonly headers: Readonly<Record<string, string>> | null
  /** HTTP status of the receiver, or the reply code of a mail server; null without an answer. */
  readonly status: number | null
  /** The beginning of the answer. */
  readonly answer: string | null
  /** Why it failed; null for a success. */
  readonly error: string | null
}

/** A receiver of webhooks. Tasks with a callback share one of their account, whose URL is null. */
export interface WebhookEndpoint {
  /** `whe_` + ULID. */
  readonly id: string
  readonly kind: 'webhook' | 'callback'
  /** `INSTALLATION`, or an account. */
  readonly accountId: string
  readonly url: string | null
  readonly description: string
  /** Null: all events. */
  readonly events: readonly string[] | null
  readonly enabled: boolean
  readonly failingSince: Date | null
  /** Until then the former secret signs as well; null without one. */
  readonly formerUntil: Date | null
  readonly createdAt: Date
}

/** Mails that are no events. */
export type ServiceMail = 'invitation' | 'recovery' | 'new_email' | 'email_changed'

/** A mail of the service, sealed until it is sent: it has links that open things. */
export interface NewMail {
  readonly mail: ServiceMail
  readonly locale: Locale
  /** Values that its texts name. */
  readonly values: Readonly<Record<string, string>>
  /** The link of its button; null without one. */
  readonly link: string | null
}

/** A delivery, with all that an attempt at it needs. */
export interface DueDelivery {
  readonly id: string
  readonly lane: string
  readonly tries: number
  readonly state: DeliveryState
  readonly event: NotifiedEvent | null
  /** Of the event; null for the installation, or where the account is gone. */
  readonly accountName: string | null
  /** Of a webhook. */
  readonly endpoint: {
    readonly url: string
    readonly enabled: boolean
    readonly secrets: readonly string[]
  } | null
  /** Of an email. */
  readonly address: string | null
  readonly locale: Locale
  readonly mail: NewMail | null
  /** True where the master key does not open its mail or the secret of its endpoint: it cannot be sent as it is. */
  readonly isUnreadable: boolean
}

/** The end of an attempt. */
export interface AttemptResult {
  readonly delivery: Pick<DueDelivery, 'id' | 'tries'>
  readonly attempt: Attempt
  readonly state: DeliveryState
  /** Milliseconds until the next one, where the state is `waiting`. */
  readonly pauseMs: number
}

/** A delivery as its account reads it. */
export interface DeliveryRecord {
  readonly id: string
  readonly position: bigint
  readonly accountId: string
  readonly event: NotifiedEvent
  readonly endpointId: string | null
  /** A URL or an email address. */
  readonly target: string
  readonly state: DeliveryState
  readonly attempts: readonly Attempt[]
  readonly dueAt: Date
  readonly createdAt: Date
  readonly endedAt: Date | null
}
