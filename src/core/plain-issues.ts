/** Words for complaints of schemas, in place of those that name values of JavaScript. */
import type { z } from 'zod'

/** Options of each parse of what a client sends. */
export const PLAIN_ISSUES: { readonly error: z.core.$ZodErrorMap } = {
  error: ({ code, input }) => {
    if (code !== 'invalid_type') return undefined
    if (input === undefined) return 'it is missing'
    return Number.isNaN(input) ? 'it is not a number' : undefined
  },
}
