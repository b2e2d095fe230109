/** Operation that finds what an id names. */
import { z } from 'zod'
import { operation, toPageSchema } from '../operation.ts'

const MAX_QUERY_CHARS = 100

export const search = operation('search', {
  summary: 'Find a call, task, key, account or user by its id.',
  details:
    'A call is found by its number, its request id and the id of its task. What the caller may not see is not found.',
  input: z.object({ q: z.string().trim().min(1).max(MAX_QUERY_CHARS) }),
  answer: {
    name: 'SearchResults',
    schema: toPageSchema(
      z.object({
        type: z.enum(['call', 'task', 'key', 'account', 'user']),
        id: z.string(),
        account_id: z.string(),
        name: z.string().describe('The name, the email address, or the model.'),
      }),
    ),
  },
  scope: 'read',
  allows: 'signed-in',
})
