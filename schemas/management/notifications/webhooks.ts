/** Operations of webhook endpoints. `account_id` may be `installation`, whose endpoints are the operators'. */
import { z } from 'zod'
import { callerLink } from '../../media/fields.ts'
import { EVENT_TYPES } from '../../notifications/event.ts'
import { instantText, operation, pageInput, toPageSchema } from '../operation.ts'
import { deliverySchema } from './deliveries.ts'

const MAX_DESCRIPTION_CHARS = 200

const accountId = z
  .string()
  .describe('The account whose events are sent, or `installation` for those of the installation.')
const id = z.string()
const url = callerLink.describe('A public http or https address. It is checked again at each attempt.')
const description = z.string().trim().max(MAX_DESCRIPTION_CHARS).describe('What the endpoint is.')
const events = z
  .array(z.enum(EVENT_TYPES))
  .min(1)
  .nullable()
  .describe('Events to post. null: all events of the account.')
const secret = z.string().describe('`whsec_` and the key that signs, in base64.')

const webhookSchema = z.object({
  id,
  account_id: z.string(),
  url: z.string(),
  description: z.string(),
  events: z.array(z.string()).nullable(),
  enabled: z.boolean().describe('An endpoint that fails for five days is switched off.'),
  failing_since: instantText.nullable().describe('The first failure since the last success.'),
  former_secret_until: instantText
    .nullable()
    .describe('Until then the secret before the rotation signs as well.'),
  created_at: instantText,
})

const webhook = { name: 'Webhook', schema: webhookSchema }
const withSecret = {
  name: 'WebhookWithSecret',
  schema: webhookSchema.extend({ secret: secret.describe('Shown only once.') }),
}
const ofOwner = { scope: 'admin', allows: ['owner'] } as const

export const createWebhook = operation('createWebhook', {
  ...ofOwner,
  summary: 'Create a webhook endpoint.',
  input: z.object({
    account_id: accountId,
    url,
    description: description.default(''),
    events: events.default(null),
  }),
  answer: withSecret,
  isSecret: true,
  isIdempotent: true,
  status: 201,
  commands: [
    {
      words: 'webhook create',
      summary: 'Create a webhook endpoint. Its secret is printed only once.',
      example: '--url https://example.com/hooks',
    },
  ],
})

export const listWebhooks = operation('listWebhooks', {
  ...ofOwner,
  scope: 'read',
  summary: 'List the webhook endpoints of an account, the newest first.',
  input: z.object({ account_id: accountId, ...pageInput }),
  answer: { name: 'WebhookList', schema: toPageSchema(webhookSchema) },
  commands: [{ words: 'webhook list', columns: 'id url events enabled failing_since' }],
})

export const showWebhook = operation('showWebhook', {
  ...ofOwner,
  scope: 'read',
  summary: 'Show a webhook endpoint.',
  input: z.object({ id }),
  answer: webhook,
  commands: [{ words: 'webhook show' }],
})

export const updateWebhook = operation('updateWebhook', {
  ...ofOwner,
  summary: 'Change a webhook endpoint, or switch it on or off. What is left out stays the same.',
  input: z.object({
    id,
    url: url.optional(),
    description: description.optional(),
    events: events.optional(),
    enabled: z.boolean().optional(),
  }),
  answer: webhook,
  commands: [
    {
      words: 'webhook update',
      flags: { enable: ['Switch it on', { enabled: true }], disable: ['Switch it off', { enabled: false }] },
      example: '--events balance.low,balance.empty',
    },
  ],
})

export const deleteWebhook = operation('deleteWebhook', {
  ...ofOwner,
  summary: 'Delete a webhook endpoint and its deliveries.',
  input: z.object({ id }),
  answer: { name: 'DeletedWebhook', schema: z.object({ id, deleted: z.literal(true) }) },
  commands: [
    {
      words: 'webhook delete',
      effect:
        'This would delete the endpoint {url} ({id}) for good, with its deliveries, including those that are waiting',
    },
  ],
})

export const rotateWebhook = operation('rotateWebhook', {
  ...ofOwner,
  summary: 'Replace the secret of a webhook endpoint. For 24 hours the old one signs too.',
  input: z.object({ id }),
  answer: withSecret,
  isSecret: true,
  isIdempotent: true,
  commands: [{ words: 'webhook rotate' }],
})

export const testWebhook = operation('testWebhook', {
  ...ofOwner,
  summary: 'Send a `webhook.test` event to a webhook endpoint.',
  input: z.object({ id }),
  answer: { name: 'Delivery', schema: deliverySchema },
  isIdempotent: true,
  status: 201,
  commands: [{ words: 'webhook test' }],
})

export const replayFailed = operation('replayFailed', {
  ...ofOwner,
  summary: 'Send the failed deliveries of a webhook endpoint again, from a given time on.',
  input: z.object({ id, since: instantText.describe('Only from this time on.') }),
  answer: { name: 'Replayed', schema: z.object({ replayed: z.number().int() }) },
  commands: [{ words: 'webhook replay-failed', example: '--since 2026-11-24' }],
})

const callbackSecret = { name: 'CallbackSecret', schema: z.object({ account_id: z.string(), secret }) }
const anAccount = z.string().describe('The account whose tasks have a `callback_url`.')

export const revealCallbackSecret = operation('revealCallbackSecret', {
  ...ofOwner,
  summary: 'Show the secret that signs the callbacks of an account’s tasks.',
  input: z.object({ account_id: anAccount }),
  answer: callbackSecret,
  isSensitive: true,
  isSecret: true,
  commands: [{ words: 'webhook callback-secret', args: 'account_id' }],
})

export const rotateCallbackSecret = operation('rotateCallbackSecret', {
  ...ofOwner,
  summary: 'Replace the secret of callbacks. For 24 hours the old one signs too.',
  input: z.object({ account_id: anAccount }),
  answer: callbackSecret,
  isSensitive: true,
  isSecret: true,
  isIdempotent: true,
  commands: [{ words: 'webhook rotate-callback-secret', args: 'account_id' }],
})
