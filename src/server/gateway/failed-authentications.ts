/** Refused keys: counts each by its reason, and logs from time to time which addresses they come from. */
import { AUTH_MESSAGES } from '../../../schemas/failure.ts'
import { addressPrefix } from '../../core/keys/address-prefix.ts'
import { stillHolds } from '../../core/still-holds.ts'

/** However many keys are refused, so often one line at most. */
export const LOG_INTERVAL_MS = 10_000

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries(AUTH_MESSAGES).map(([reason, message]) => [message, reason]),
)

interface FailedAuthenticationDeps {
  readonly count: (reason: string) => void
  readonly log: { warn(details: object, message: string): void }
  readonly now?: () => number
}

/**
 * Returns a function to call with the public message of a refusal and a getter of its client's address. It never
 * throws.
 */
export function failedAuthentications({ count, log, now = Date.now }: FailedAuthenticationDeps) {
  let quietUntil = 0
  let refused = 0
  return (message: string, peer: () => string): void => {
    const reason = REASONS.get(message) ?? 'other'
    count(reason)
    refused++
    if (stillHolds(quietUntil, now(), LOG_INTERVAL_MS)) return
    log.warn({ reason, address_prefix: addressPrefix(peer()), refused }, 'Refused API keys')
    quietUntil = now() + LOG_INTERVAL_MS
    refused = 0
  }
}
