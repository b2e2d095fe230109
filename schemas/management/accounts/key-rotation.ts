/** Operations of the secrets of one key. */
import { z } from 'zod'
import { DEFAULT_GRACE_SECONDS, MAX_GRACE_SECONDS } from '../../accounts/key.ts'
import { operation } from '../operation.ts'
import { keySchema, keyWithSecret, toHold } from './keys.ts'

export const rotateKey = operation('rotateKey', {
  ...toHold,
  summary: 'Give a key a new secret under the same id.',
  details:
    'The former secret works until the new one was first used plus the grace, at most 30 days. Where the new one was ' +
    'not used yet, rotating again replaces it, and the former one works on. Where it was, it is 409: end the former ' +
    'secret first. Only that member and owners rotate the key of a member.',
  input: z.object({
    id: z.string(),
    grace_seconds: z
      .int()
      .min(0)
      .max(MAX_GRACE_SECONDS)
      .default(DEFAULT_GRACE_SECONDS)
      .describe('How long the former secret works after the first use of the new one.'),
  }),
  answer: { name: 'CreatedKey', schema: keyWithSecret },
  isIdempotent: true,
  isSensitive: true,
  isSecret: true,
  commands: [{ words: 'key rotate', example: '--grace 24h' }],
})

export const endFormerSecret = operation('endFormerSecret', {
  summary: 'End the former secret of a rotated key now.',
  input: z.object({ id: z.string() }),
  answer: { name: 'ManagedKey', schema: keySchema },
  scope: 'keys',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'key end-former',
      effect:
        'This would end the former secret of the key {name} ({id}) for good, and programs that still use it would be refused',
    },
  ],
})
