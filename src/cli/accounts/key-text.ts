/** Keys as text for a reader. */
import type { showKey } from '../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'

/** Replaces null by its meaning. */
export const keyInWords = <Shape extends AnswerOf<typeof showKey>>(json: Shape) => ({
  ...json,
  allowed_models: json.allowed_models ?? 'all',
  expires_at: json.expires_at ?? 'never',
})
