/** Operations of API keys. */
import { z } from 'zod'
import { MAX_NAME_CHARS, MAX_REQUEST_LIMIT } from '../../accounts/account.ts'
import { keyKind } from '../../accounts/key.ts'
import { creditsText } from '../../money.ts'
import { amountText, instantText, operation, pageInput, toPageSchema } from '../operation.ts'

const MAX_MODELS = 500

const name = z.string().trim().min(1).max(MAX_NAME_CHARS).describe('Name to show.')
export const expiresAt = instantText.nullable().describe('RFC 3339 time at which it expires. null: never.')
const allowedModels = z
  .array(z.string().min(1))
  .max(MAX_MODELS)
  .nullable()
  .describe('Model ids that the key may call. null: every model.')

const formerSecret = z.object({
  key_prefix: z.string().describe('Its first 20 characters.'),
  replaced_at: instantText,
  grace_seconds: z.int(),
  successor_used_at: instantText.nullable().describe('First use of the new secret. null: not yet.'),
  last_used_at: instantText.nullable().describe('Use since it was replaced, to the minute.'),
  ends_at: instantText.describe('From then on it is refused. Without a use of the new secret: its last day.'),
})

export const spendCap = creditsText
  .refine((cap) => cap >= 0n, 'A spend cap is never negative')
  .describe('The most that an employee or agent key may spend in total.')

const maxPrice = creditsText
  .refine((price) => price > 0n, 'The most that a call may cost is above 0')
  .nullable()
  .describe('The most that one call may cost, credits: a higher estimate is refused. null: no limit.')

const MAX_ADDRESSES = 100
const limit = (what: string) =>
  z.int().min(1).max(MAX_REQUEST_LIMIT).nullable().describe(`${what} null: no limit besides the account's.`)
const limits = {
  requests_per_minute: limit('Requests of this key in 60 seconds.'),
  concurrency: limit('Requests of this key in flight at once.'),
  allowed_addresses: z
    .array(z.string().max(64))
    .min(1, 'names at least one address; null allows every address')
    .max(MAX_ADDRESSES)
    .nullable()
    .describe('Addresses and networks that the key works from, such as `10.0.0.0/8`. null: from anywhere.'),
}

export const limitsOfNewKey = {
  requests_per_minute: limits.requests_per_minute.default(null),
  concurrency: limits.concurrency.default(null),
  allowed_addresses: limits.allowed_addresses.default(null),
  max_price: maxPrice.default(null),
}

export const keySchema = z.object({
  id: z.string(),
  account_id: z.string(),
  name: z.string(),
  kind: keyKind,
  key_prefix: z.string().describe('The first 20 characters.'),
  allowed_models: z.array(z.string()).nullable(),
  expires_at: instantText.nullable(),
  ...limits,
  enabled: z.boolean(),
  revoked_at: instantText.nullable(),
  agent_id: z.string().nullable(),
  member_id: z.string().nullable(),
  spend_cap: amountText.nullable(),
  spent: amountText.nullable(),
  max_price: amountText.nullable(),
  account_logs: z.boolean(),
  opens_draft: z.boolean().describe('Of an agent key: it calls the draft of its agent, published or not.'),
  revealable: z.boolean(),
  former_secret: formerSecret.nullable().describe('Of a key that was rotated.'),
  created_at: instantText,
})

export const keyWithSecret = keySchema.extend({ key: z.string().describe('The key itself.') })

const id = z.string()

const toChange = { scope: 'keys', allows: ['owner', 'admin'] } as const
/** Operations that show a secret: a member has those of their own keys. */
export const toHold = { scope: 'keys', allows: ['owner', 'admin', 'member'] } as const

export const listKeys = operation('listKeys', {
  summary: 'List the keys of an account.',
  input: z.object({ account_id: z.string(), ...pageInput }),
  answer: { name: 'KeyList', schema: toPageSchema(keySchema) },
  scope: 'read',
  allows: ['owner', 'admin', 'member'],
  commands: [
    {
      words: 'key list',
      columns: 'id name kind key_prefix allowed_models expires_at enabled revoked_at spend_cap spent',
    },
  ],
})

export const createKey = operation('createKey', {
  ...toChange,
  summary: 'Create a key.',
  input: z.object({
    account_id: z.string(),
    name,
    kind: keyKind.default('console').describe('What it is for.'),
    agent_id: z.string().nullable().default(null).describe('The agent that an agent key is bound to.'),
    allowed_models: allowedModels.default(null),
    expires_at: expiresAt.default(null),
    spend_cap: spendCap.nullable().default(null),
    account_logs: z.boolean().default(false).describe('Let it read the logs of the whole account.'),
    opens_draft: z.boolean().default(false).describe('For an agent key: call the draft of its agent.'),
    ...limitsOfNewKey,
  }),
  answer: { name: 'CreatedKey', schema: keyWithSecret },
  isIdempotent: true,
  isSecret: true,
  status: 201,
  commands: [
    {
      words: 'key create',
      summary: 'Create a key and print it.',
      example: '--name laptop --models sonata-large,sonata-small',
    },
  ],
})

export const showKey = operation('showKey', {
  summary: 'Show a key without its secret.',
  input: z.object({ id }),
  answer: { name: 'ManagedKey', schema: keySchema },
  scope: 'read',
  allows: ['owner', 'admin', 'member'],
  commands: [{ words: 'key show' }],
})

export const updateKey = operation('updateKey', {
  ...toChange,
  summary: 'Change a key, everywhere within a second. What is left out stays the same.',
  input: z.object({
    id,
    name: name.optional(),
    allowed_models: allowedModels.optional(),
    expires_at: expiresAt.optional(),
    enabled: z.boolean().optional(),
    spend_cap: spendCap.nullable().optional(),
    account_logs: z.boolean().optional().describe('Let it read the logs of the whole account.'),
    requests_per_minute: limits.requests_per_minute.optional(),
    concurrency: limits.concurrency.optional(),
    allowed_addresses: limits.allowed_addresses.optional(),
    max_price: maxPrice.optional(),
  }),
  answer: { name: 'ManagedKey', schema: keySchema },
  commands: [
    {
      words: 'key update',
      flags: {
        enable: ['Allow it again', { enabled: true }],
        disable: ['Refuse it until it is enabled again', { enabled: false }],
      },
      example: '--models all --expires never',
    },
  ],
})

export const revealKey = operation('revealKey', {
  ...toHold,
  summary: 'Show the key itself again.',
  details: 'The key of a member is shown to that member and to owners, not to admins.',
  input: z.object({ id }),
  answer: { name: 'CreatedKey', schema: keyWithSecret },
  isSensitive: true,
  isSecret: true,
  commands: [{ words: 'key reveal' }],
})

export const forgetKeys = operation('forgetKeys', {
  summary:
    'Delete the encrypted copies of all keys for good. The keys keep working; none can be shown again.',
  input: z.object({}),
  answer: { name: 'ForgottenKeys', schema: z.object({ forgotten: z.int() }) },
  scope: 'admin',
  allows: 'operators',
  isSensitive: true,
  commands: [
    {
      words: 'key forget',
      effect: 'This would delete the encrypted copies of all keys: none could be revealed again',
      example: '--all',
    },
  ],
})

export const revokeKey = operation('revokeKey', {
  ...toChange,
  summary: 'Revoke a key for good.',
  input: z.object({ id }),
  answer: { name: 'ManagedKey', schema: keySchema },
  commands: [
    {
      words: 'key revoke',
      effect: 'This would revoke the key {name} ({id}) for good, and its calls would be refused at once',
    },
  ],
})
