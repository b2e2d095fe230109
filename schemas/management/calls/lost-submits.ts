/** Operations of lost submits: what a provider may have begun for a customer who has an error. */
import { z } from 'zod'
import { creditsText } from '../../money.ts'
import { lostSubmitState } from '../../tasks/lost-submit.ts'
import { taskKind } from '../../tasks/task.ts'
import { amountText, instantText, operation, pageInput, toPageSchema } from '../operation.ts'

const MAX_REASON_CHARS = 500

const lostSubmit = z.object({
  id: z.string().describe('Our reference, under which the provider may have it.'),
  state: lostSubmitState.describe(
    '`open`: it is not known whether the provider has it; `found`: it has. The others are closed.',
  ),
  kind: taskKind,
  model: z.string(),
  account_id: z.string().describe('Whose request it was. It paid nothing.'),
  request_id: z.string(),
  channel_id: z.string().nullable(),
  reason: z.string().describe('What the customer was answered.'),
  upstream_id: z.string().nullable().describe("The provider's own id."),
  upstream_state: z.string().nullable(),
  cost: amountText.nullable().describe('What the operator pays for it; null: not known.'),
  lost_at: instantText,
  checked_at: instantText.nullable().describe('When the provider was last asked.'),
  next_check_at: instantText.nullable().describe('null: it is not asked again.'),
  closed_at: instantText.nullable(),
  closed_by: z.string().nullable().describe("null: the provider's answer closed it."),
  close_reason: z.string().nullable(),
})

const id = z.string().describe('The lost submit.')

export const listLostSubmits = operation('listLostSubmits', {
  summary: 'List submits whose outcome at their provider is unknown, the newest first.',
  details:
    'Their customers have an error and their money. What the provider may have begun costs the operator.',
  input: z.object({
    state: z.enum(['open', 'all']).default('open').describe('`all`: closed ones too.'),
    ...pageInput,
  }),
  answer: { name: 'LostSubmitList', schema: toPageSchema(lostSubmit) },
  scope: 'read',
  allows: 'operators',
  commands: [
    {
      words: 'task lost',
      limit: 50,
      flags: { all: ['Include closed ones', { state: 'all' }] },
      columns: 'id state account_id model channel_id upstream_id cost lost_at next_check_at reason',
    },
  ],
})

export const checkLostSubmit = operation('checkLostSubmit', {
  summary: 'Ask the provider about a lost submit now, and cancel the task there if possible.',
  details: 'A task worker does it within seconds. 409 when it is closed.',
  input: z.object({ id }),
  answer: { name: 'LostSubmit', schema: lostSubmit },
  scope: 'admin',
  allows: 'operators',
  commands: [{ words: 'task lost-check' }],
})

export const closeLostSubmit = operation('closeLostSubmit', {
  summary: 'Close a lost submit that has been dealt with, and record what it cost the operator.',
  details: 'No account is charged. 409 when it is closed.',
  input: z.object({
    id,
    cost: creditsText
      .refine((cost) => cost >= 0n, 'must not be negative')
      .nullable()
      .default(null)
      .describe('What the operator paid. null: not known.'),
    reason: z.string().trim().min(1).max(MAX_REASON_CHARS).describe('What was done about it.'),
  }),
  answer: { name: 'ClosedLostSubmit', schema: lostSubmit },
  scope: 'admin',
  allows: 'operators',
  isSensitive: true,
  commands: [{ words: 'task lost-close', example: '--cost 12.5 --reason "on the May invoice"' }],
})
