/** Signatures of webhooks after the Standard Webhooks specification, version `v1`. See docs/notifications.md. */
import { createHmac, randomBytes } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** Returns `whsec_` and 256 random bits in base64. */
export const generateWebhookSecret = (): string =>
  SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')

const sign = (secret: string, content: string): string =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64'))
    .update(content)
    .digest('base64')}`

/**
 * Returns the three headers of a webhook, signed with each secret.
 * @param id the same in every attempt at the event
 * @param at epoch milliseconds of the attempt
 */
export function webhookHeaders(
  id: string,
  at: number,
  body: string,
  secrets: readonly string[],
): Record<string, string> {
  const seconds = Math.floor(at / 1000)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': secrets.map((secret) => sign(secret, `${id}.${seconds}.${body}`)).join(' '),
  }
}
