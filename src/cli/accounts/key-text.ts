/** Keys as text for a reader. */
import type { showKey } from '../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'

type FormerSecret = NonNullable<AnswerOf<typeof showKey>['former_secret']>

/** Returns what a reader has to know of the former secret of a rotated key. */
function formerSecretInWords({ key_prefix, successor_used_at, ends_at }: FormerSecret): string {
  if (Date.parse(ends_at) <= Date.now()) return `${key_prefix}… ended at ${ends_at}`
  const until = `${key_prefix}… works until ${ends_at}`
  return successor_used_at === null ? `${until} at most: the new secret was not used yet` : until
}

/** Replaces null by its meaning. */
export const keyInWords = <Shape extends AnswerOf<typeof showKey>>(json: Shape) => ({
  ...json,
  allowed_models: json.allowed_models ?? 'all',
  expires_at: json.expires_at ?? 'never',
  requests_per_minute: json.requests_per_minute ?? 'none',
  concurrency: json.concurrency ?? 'none',
  allowed_addresses: json.allowed_addresses ?? 'any',
  former_secret: json.former_secret && formerSecretInWords(json.former_secret),
})
