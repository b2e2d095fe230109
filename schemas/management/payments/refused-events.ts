/** Operations of refused payment events: what the provider reports and our payments contradict. */
import { z } from 'zod'
import { instantText, operation, pageInput, toPageSchema } from '../operation.ts'

const MAX_REASON_CHARS = 500

const refusedEventSchema = z.object({
  id: z.string().describe("The provider's id."),
  type: z.string(),
  payment_id: z.string().nullable(),
  account_id: z.string().nullable(),
  refusal: z.string().describe('What it contradicts. Nothing was booked.'),
  created_at: instantText,
  received_at: instantText,
  closed_at: instantText.nullable(),
  closed_by: z.string().nullable(),
  close_reason: z.string().nullable(),
})

export const listRefusedEvents = operation('listRefusedEvents', {
  summary: 'List payment events that were not booked because they contradict a payment, the newest first.',
  input: z.object({
    state: z.enum(['open', 'all']).default('open').describe('`all`: closed ones too.'),
    ...pageInput,
  }),
  answer: { name: 'RefusedPaymentEventList', schema: toPageSchema(refusedEventSchema) },
  scope: 'read',
  allows: 'operators',
  commands: [
    {
      words: 'payments refused',
      flags: { all: ['Include closed ones', { state: 'all' }] },
      columns: 'id type account_id payment_id received_at refusal close_reason',
    },
  ],
})

export const closeRefusedEvent = operation('closeRefusedEvent', {
  summary:
    'Close a refused payment event that has been dealt with, so that `wallet verify` no longer reports it.',
  details: 'It books nothing. 409 when it was closed before.',
  input: z.object({
    id: z.string().describe("The provider's id of the event."),
    reason: z.string().trim().min(1).max(MAX_REASON_CHARS).describe('What was done about it.'),
  }),
  answer: { name: 'RefusedPaymentEvent', schema: refusedEventSchema },
  scope: 'billing',
  allows: 'operators',
  isSensitive: true,
  commands: [{ words: 'payments close', example: 'evt_1SWyQ2Lkd --reason "refunded at the provider"' }],
})
