/** One attempt at a delivery: a signed post to an endpoint, or an email. Its end decides whether another follows. */
import type { Attempt, AttemptResult, DueDelivery } from '../../schemas/notifications/delivery.ts'
import type { NotifiedEvent } from '../../schemas/notifications/event.ts'
import { redact } from '../../src/core/call-log/redact.ts'
import { webhookHeaders } from '../../src/core/notifications/signature.ts'
import type { Posted, PostOptions } from '../../src/fetch/guarded-post.ts'
import type { Mail } from '../../src/mail/mail.ts'

const WEBHOOK_TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 4096
const USER_AGENT = 'tollgate-webhooks'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The pause after each attempt; after one more attempt the delivery fails. In total 23 hours and 43 minutes. */
const PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  6 * HOUR_MS,
  10 * HOUR_MS,
]

/** Adds up to this share of a pause, so that deliveries that failed together are not retried together. */
const JITTER = 0.1

export interface AttemptDeps {
  readonly post: (url: string, options: PostOptions) => Promise<Posted>
  /** Returns whether the configuration allows webhooks to private addresses. */
  readonly mayBePrivate: () => boolean
  /** Null if no mail server is configured. */
  readonly mail: Mail | null
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly random: () => number
}

/** Returns the body of a webhook: the same in every attempt. */
export const printWebhookBody = ({ id, type, accountId, createdAt, data }: NotifiedEvent): string =>
  JSON.stringify({ id, type, timestamp: createdAt.toISOString(), account_id: accountId, data })

type Outcome = Pick<Attempt, 'headers' | 'status' | 'answer' | 'error'> & {
  /** No later attempt can succeed. */
  readonly isFinal?: true
}

const FAILURES = {
  not_public: 'The receiver has no public address.',
  timeout: 'The receiver did not answer within 10 seconds.',
  unreachable: 'The receiver cannot be reached.',
} as const

const toUnsent = (error: string): Outcome => ({ headers: null, status: null, answer: null, error })
const neverSent = (error: string): Outcome => ({ ...toUnsent(error), isFinal: true })

function explainStatus(status: number): string | null {
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400)
    return `The receiver redirects (${status}); webhooks follow no redirects.`
  return `The receiver answered with status ${status}.`
}

async function sendWebhook(deps: AttemptDeps, delivery: DueDelivery): Promise<Outcome> {
  const { endpoint, event } = delivery
  if (endpoint === null || event === null) return neverSent('The endpoint is gone.')
  if (!endpoint.enabled) return neverSent('The endpoint is switched off.')
  // Not final: the owner can replace the secret, and an operator can restore the key that sealed it.
  if (delivery.isUnreadable) return toUnsent('The stored secret of the endpoint cannot be read. Replace it.')
  const body = printWebhookBody(event)
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    ...webhookHeaders(event.id, deps.now(), body, endpoint.secrets),
  }
  const { status, answer, failure } = await deps.post(endpoint.url, {
    headers,
    body,
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    ...(deps.mayBePrivate() && { isAllowed: () => true }),
  })
  if (status === null) return { headers, status, answer: null, error: FAILURES[failure ?? 'unreachable'] }
  return { headers, status, answer, error: explainStatus(status) }
}

async function sendEmail({ mail }: AttemptDeps, delivery: DueDelivery): Promise<Outcome> {
  const { address } = delivery
  if (mail === null || address === null) return neverSent('No mail server is configured.')
  if (delivery.isUnreadable) return toUnsent('The stored mail cannot be read.')
  const { status, answer, isAccepted, isRefused } = await mail.send(delivery.id, address, delivery)
  const sent = { headers: null, status, answer }
  if (isAccepted) return { ...sent, error: null }
  const error = redact(`The mail server did not take it: ${answer}`, [], [])
  return { ...sent, error, ...(isRefused && { isFinal: true as const }) }
}

/** Makes the attempt. Never rejects. */
export async function attempt(deps: AttemptDeps, delivery: DueDelivery): Promise<AttemptResult> {
  const { now, random } = deps
  const startedAt = now()
  const sending = delivery.address === null ? sendWebhook(deps, delivery) : sendEmail(deps, delivery)
  const { isFinal, ...outcome } = await sending.catch(
    (error: Error): Outcome => ({ ...neverSent(`It cannot be sent: ${error.message}`) }),
  )
  const pauseMs = outcome.error === null || isFinal ? null : pauseAfter(delivery.tries, random())
  return {
    delivery,
    attempt: { at: new Date(startedAt).toISOString(), duration_ms: now() - startedAt, ...outcome },
    state: outcome.error === null ? 'delivered' : pauseMs === null ? 'failed' : 'waiting',
    pauseMs: pauseMs ?? 0,
  }
}

/**
 * Returns the pause before the next attempt; null after the last.
 * @param tries attempts before the one that failed
 * @param random from 0 to 1
 */
function pauseAfter(tries: number, random: number): number | null {
  const pause = PAUSES_MS[tries]
  return pause === undefined ? null : Math.round(pause * (1 + JITTER * random))
}
