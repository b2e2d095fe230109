/** Operations on the call log as a whole. */
import { z } from 'zod'
import { unbookedSum } from '../call-log/unbooked.ts'
import { amountText, operation } from './operation.ts'

export const importLog = operation('importLog', {
  summary: 'Book the calls that the call log has and PostgreSQL has not, each once.',
  details:
    'There are some only where PostgreSQL lost what it had committed, such as after a restore from an older copy. With ' +
    '`dry_run`, the default, nothing is booked. Calls of accounts that PostgreSQL does not know stay as they are. The log ' +
    'has booked calls twice until it is rebuilt.',
  input: z.object({ dry_run: z.boolean().default(true) }),
  answer: {
    name: 'ImportedCallLog',
    schema: unbookedSum.extend({
      dry_run: z.boolean(),
      booked_calls: z.int().describe('Calls that were booked now; 0 for a dry run.'),
      booked_cost: amountText.describe('What they cost, in credits.'),
    }),
  },
  scope: 'admin',
  allows: 'operators',
  commands: [
    {
      words: 'wallet import-log',
      summary: 'Show the calls that only the call log has; with --book, book each of them once.',
      flags: { book: ['Book them; asks first', { dry_run: false }] },
    },
  ],
})
