/** Operations of accounts and their wallets. */
import { z } from 'zod'
import {
  accountKind,
  LEDGER_KINDS,
  MAX_NAME_CHARS,
  MAX_NOTE_CHARS,
  MAX_REQUEST_LIMIT,
  MINIMUM_TOP_UP,
} from '../../accounts/account.ts'
import { currency } from '../../call-log/row.ts'
import { creditsText } from '../../money.ts'
import { amountText, instantText, operation, pageInput, timezone, toPageSchema } from '../operation.ts'

const id = z.string()
const name = z.string().trim().min(1).max(MAX_NAME_CHARS).describe('Name to show.')
const note = z
  .string()
  .trim()
  .min(1)
  .max(MAX_NOTE_CHARS)
  .describe('Why, for the ledger and the audit record.')
const limit = z.int().min(1).max(MAX_REQUEST_LIMIT).nullable()

export const walletSchema = z.object({
  account_id: z.string(),
  currency,
  balance: amountText,
  remaining: amountText.describe('Equals `balance`.'),
  held: amountText.describe('Held for tasks that run.'),
  used: amountText,
  total: amountText,
})

const accountSchema = z.object({
  id: z.string(),
  name: z.string(),
  kind: accountKind,
  enabled: z.boolean(),
  requests_per_minute: z.int().nullable(),
  concurrency: z.int().nullable(),
  allowed_models: z.array(z.string()).nullable(),
  created_at: instantText,
  wallet: walletSchema,
})

const ledgerEntrySchema = z.object({
  id: z.int(),
  account_id: z.string(),
  kind: z.enum(LEDGER_KINDS),
  amount: amountText,
  ref: z.string().nullable().describe('The call or task of the entry.'),
  note: z.string().nullable(),
  actor: z.string().nullable(),
  reference: z.string().nullable(),
  created_at: instantText,
})

const account = { name: 'Account', schema: accountSchema }
const ofOperators = { scope: 'accounts', allows: 'operators' } as const

const ACCOUNT_COLUMNS =
  'id name kind enabled requests_per_minute concurrency allowed_models created_at wallet.remaining wallet.held wallet.used wallet.total'

export const listAccounts = operation('listAccounts', {
  ...ofOperators,
  scope: 'read',
  summary: 'List accounts.',
  input: z.object({
    search: z.string().max(200).optional().describe('Part of the id or name.'),
    ...pageInput,
  }),
  answer: { name: 'AccountList', schema: toPageSchema(accountSchema) },
  commands: [
    {
      words: 'account list',
      columns: 'id name kind enabled requests_per_minute concurrency wallet.remaining created_at',
    },
  ],
})

export const showAccount = operation('showAccount', {
  summary: 'Show an account with its wallet.',
  input: z.object({ id }),
  answer: account,
  scope: 'read',
  allows: ['owner', 'admin', 'billing'],
  commands: [{ words: 'account show', columns: ACCOUNT_COLUMNS }, { words: 'wallet show' }],
})

export const createAccount = operation('createAccount', {
  ...ofOperators,
  summary: 'Create an account with the trial credit.',
  input: z.object({
    name,
    kind: accountKind.default('personal').describe('Who it is for.'),
    credit: creditsText.optional().describe('Trial credit in place of the configured one.'),
  }),
  answer: account,
  isIdempotent: true,
  status: 201,
  commands: [
    {
      words: 'account create',
      columns: ACCOUNT_COLUMNS,
      example: '--name Acme --kind organization --credit 500',
    },
  ],
})

export const createOrganization = operation('createOrganization', {
  summary: 'Create an organization, whose owner is the user.',
  input: z.object({ name }),
  answer: account,
  scope: 'accounts',
  allows: 'signed-in',
  isIdempotent: true,
  status: 201,
})

export const viewAccount = operation('viewAccount', {
  ...ofOperators,
  summary: 'Record that an operator views an account as its owner sees it.',
  input: z.object({ id }),
  answer: account,
})

export const renameAccount = operation('renameAccount', {
  summary: 'Rename an account.',
  input: z.object({ id, name }),
  answer: account,
  scope: 'accounts',
  allows: ['owner'],
})

export const updateAccount = operation('updateAccount', {
  ...ofOperators,
  summary:
    'Enable or disable an account, or change its limits. What is absent stays the same; null removes a limit.',
  input: z.object({
    id,
    enabled: z.boolean().optional(),
    requests_per_minute: limit.optional().describe('Requests in 60 seconds.'),
    concurrency: limit.optional().describe('Requests in flight at once.'),
    allowed_models: z.array(z.string()).nullable().optional().describe('Model ids. null: every model.'),
  }),
  answer: account,
  commands: [
    {
      options: '',
      values: { enabled: true },
      words: 'account enable',
      summary: 'Allow the keys of an account again.',
    },
    {
      options: '',
      values: { enabled: false },
      words: 'account disable',
      summary: 'Refuse every key of an account.',
      effect: 'This would refuse every key of {name} ({id}) until the account is enabled again',
    },
    {
      options: 'requests_per_minute concurrency',
      words: 'account limits',
      summary: 'Set or remove the platform limits of an account. Options that are left out stay the same.',
      example: '--rpm 600 --concurrency none',
    },
    {
      options: 'allowed_models',
      required: 'allowed_models',
      words: 'account models',
      summary: 'Set which models the keys of an account may call.',
      example: '--models sonata-large,sonata-small',
    },
  ].map((form) => ({ ...form, columns: ACCOUNT_COLUMNS })),
})

const credited = {
  name: 'Credited',
  schema: walletSchema.extend({
    entry: ledgerEntrySchema,
    repeated: z.boolean().describe('The reference was booked earlier: nothing was changed.'),
  }),
}
const reference = note
  .nullable()
  .default(null)
  .describe('An outside reference, such as an invoice number. The same one never counts twice in an account.')

export const topUp = operation('topUp', {
  ...ofOperators,
  scope: 'billing',
  summary: `Add credits to the wallet; at least ${MINIMUM_TOP_UP}.`,
  input: z.object({
    id,
    amount: creditsText.describe('Credits.'),
    note: note.nullable().default(null),
    reference,
  }),
  answer: credited,
  isSensitive: true,
  isIdempotent: true,
  commands: [{ words: 'wallet topup', args: 'id amount', example: '1000 --reference "invoice 17"' }],
})

export const adjust = operation('adjust', {
  ...ofOperators,
  scope: 'billing',
  summary: 'Correct a balance up or down; it may fall below zero.',
  input: z.object({
    id,
    amount: creditsText.describe('Credits; negative to deduct.'),
    reason: note,
    reference,
  }),
  answer: credited,
  isSensitive: true,
  isIdempotent: true,
  commands: [
    { words: 'wallet adjust', args: 'id amount', example: '-25.5 --reason "charged twice by mistake"' },
  ],
})

export const refund = operation('refund', {
  ...ofOperators,
  scope: 'billing',
  summary: 'Refund the charge of a call or task, or part of it. Each can be refunded once.',
  input: z.object({
    id,
    ref: z.string().max(MAX_NAME_CHARS).describe('A request id or a task id.'),
    amount: creditsText.nullable().default(null).describe('Credits to refund. null: the whole charge.'),
    reason: note,
  }),
  answer: credited,
  isSensitive: true,
  isIdempotent: true,
  commands: [
    {
      words: 'wallet refund',
      args: 'id ref',
      example: 'req_01J8Z3N4V9QKX2T5W7Y0GHJKMN --reason "the answer was empty"',
    },
  ],
})

export const listLedger = operation('listLedger', {
  summary: 'List the entries of the wallet, the newest first.',
  input: z.object({
    id,
    kind: z.enum(LEDGER_KINDS).optional().describe('Only entries of this kind.'),
    day: z.iso
      .date()
      .refine((day) => /^[12]/.test(day), 'it is not a day of our time')
      .meta({ pattern: '^[12]\\d{3}-\\d{2}-\\d{2}$' })
      .optional()
      .describe('Only entries of this day.'),
    timezone,
    search: z
      .string()
      .trim()
      .min(1)
      .max(200)
      .optional()
      .describe('Only entries with this text in their note, reference, call or task.'),
    ...pageInput,
  }),
  answer: { name: 'LedgerPage', schema: toPageSchema(ledgerEntrySchema) },
  scope: 'read',
  allows: ['owner', 'billing'],
  commands: [
    { words: 'wallet ledger', limit: 50, columns: 'id created_at kind amount ref actor reference note' },
  ],
})

export const showLedgerMonth = operation('showLedgerMonth', {
  summary: 'Sum up the entries of a month by day and kind, the newest first.',
  input: z.object({
    id,
    month: z
      .string()
      .regex(/^[12]\d{3}-(?:0[1-9]|1[0-2])$/, 'it is not a month, such as 2030-01')
      .describe('Such as `2030-01`.'),
    timezone,
  }),
  answer: {
    name: 'LedgerMonth',
    schema: z.object({
      month: z.string(),
      days: z.array(
        z.object({
          day: z.string(),
          balance: amountText.describe('At the end of the day.'),
          kinds: z.array(z.object({ kind: z.enum(LEDGER_KINDS), entries: z.int(), amount: amountText })),
        }),
      ),
    }),
  },
  scope: 'read',
  allows: ['owner', 'billing'],
})
