/** Operations of deliveries: webhooks and callbacks, with request and answer. */
import { z } from 'zod'
import { DELIVERY_STATES } from '../../notifications/delivery.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../notifications/event.ts'
import { instantText, operation, pageInput, timeInput, toPageSchema } from '../operation.ts'

const attempt = z.object({
  at: instantText,
  duration_ms: z.number().int(),
  headers: z.record(z.string(), z.string()).nullable().describe('null: nothing was sent.'),
  status: z.number().int().nullable().describe('null: no answer came.'),
  answer: z.string().nullable().describe('The beginning of the answer, 4 KiB at most.'),
  error: z.string().nullable().describe('Why it failed; null for a success.'),
})

export const deliverySchema = z.object({
  id: z.string(),
  account_id: z.string(),
  endpoint_id: z.string(),
  url: z.string(),
  event_id: z.string().describe('The header `webhook-id` of every attempt.'),
  type: z.string(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.number().int(),
  last_status: z.number().int().nullable(),
  last_error: z.string().nullable(),
  next_at: instantText.nullable().describe('When it is tried again; null once it has ended.'),
  created_at: instantText,
  ended_at: instantText.nullable(),
})

const ofOwner = { scope: 'read', allows: ['owner'] } as const
const id = z.string().describe('The delivery.')

export const listDeliveries = operation('listDeliveries', {
  ...ofOwner,
  summary:
    'List the deliveries of an account’s webhooks and callbacks of the last 30 days, the newest first.',
  input: z.object({
    account_id: z.string().describe('The account, or `installation` for the installation itself.'),
    endpoint_id: z.string().optional().describe('Only deliveries to this endpoint.'),
    state: z.enum(DELIVERY_STATES).optional().describe('Only deliveries in this state.'),
    type: z
      .enum([...EVENT_TYPES, TEST_EVENT])
      .optional()
      .describe('Only deliveries of this event.'),
    ...timeInput,
    ...pageInput,
  }),
  answer: { name: 'DeliveryList', schema: toPageSchema(deliverySchema) },
  commands: [
    {
      words: 'webhook deliveries',
      limit: 50,
      columns: 'id type state attempts last_status last_error created_at url',
      example: '--state failed',
    },
  ],
})

export const showDelivery = operation('showDelivery', {
  ...ofOwner,
  summary: 'Show a delivery: its body, and each attempt with its headers and the answer.',
  input: z.object({ id }),
  answer: {
    name: 'DeliveryDetail',
    schema: deliverySchema.extend({
      body: z.string().describe('The body of every attempt.'),
      attempts_made: z.array(attempt).describe('The earliest first, 40 at most.'),
    }),
  },
  commands: [{ words: 'webhook delivery', example: 'dlv_6a0d9f0b6f7c4c1d9f0e2b3a4c5d6e7f' }],
})

export const replayDelivery = operation('replayDelivery', {
  summary: 'Send an event again, under the same id.',
  input: z.object({ id }),
  answer: { name: 'Delivery', schema: deliverySchema },
  scope: 'admin',
  allows: ['owner'],
  commands: [{ words: 'webhook replay', example: 'dlv_6a0d9f0b6f7c4c1d9f0e2b3a4c5d6e7f' }],
})
