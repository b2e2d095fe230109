/** The header Idempotency-Key. See docs/api-rules.md, "Idempotency". */
import { z } from 'zod'

export const IDEMPOTENCY_KEY_PATTERN = /^[\x21-\x7e]{1,200}$/

/** Returns the header as the reference describes it. */
export const idempotencyHeader = (effect: string) => ({
  'idempotency-key': z
    .string()
    .regex(IDEMPOTENCY_KEY_PATTERN)
    .optional()
    .describe(`1 to 200 printable ASCII characters without spaces, one for each intent: ${effect}`),
})
