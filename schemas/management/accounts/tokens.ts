/** Operations of management tokens. */
import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../accounts/account.ts'
import { instantText, operation, pageInput, SCOPES, toPageSchema } from '../operation.ts'
import { expiresAt } from './keys.ts'

const accountId = z.string().describe('Account of the token.')

const tokenSchema = z.object({
  id: z.string(),
  prefix: z.string().describe('The first 12 characters.'),
  name: z.string(),
  account_id: z.string().nullable().describe('null: the installation.'),
  scopes: z.array(z.enum(SCOPES)),
  created_by: z.string(),
  created_at: instantText,
  expires_at: instantText.nullable(),
  last_used_at: instantText.nullable(),
  revoked_at: instantText.nullable(),
})

const wanted = {
  name: z.string().trim().min(1).max(MAX_NAME_CHARS).describe('Name to show.'),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .describe(
      '`read` reads everything but secrets; the others change what they name: keys, accounts, billing, knowledge, admin.',
    ),
  expires_at: expiresAt.default(null),
}
const created = {
  name: 'CreatedToken',
  schema: tokenSchema.extend({ token: z.string().describe('The token itself, shown only once.') }),
}
const list = { name: 'TokenList', schema: toPageSchema(tokenSchema) }
const token = { name: 'ManagementToken', schema: tokenSchema }
const nulls = { account_id: 'the installation' }
const create = {
  words: 'token create',
  summary: 'Create a management token of the installation, or of an account. It is printed only once.',
  example: '--name deploy --scopes read,keys --expires 2030-01-31',
  nulls,
}
const listing = {
  words: 'token list',
  summary: 'List the management tokens of the installation, or of an account, the newest first.',
  columns: 'id prefix name account_id scopes expires_at last_used_at revoked_at',
  nulls,
}
const ofAccount = { scope: 'admin', allows: ['owner'] } as const
const ofInstallation = { scope: 'admin', allows: 'operators' } as const

export const createToken = operation('createToken', {
  ...ofAccount,
  summary: 'Create a management token of an account.',
  input: z.object({ account_id: accountId, ...wanted }),
  answer: created,
  isSensitive: true,
  isSecret: true,
  isIdempotent: true,
  status: 201,
  commands: [create],
})

export const listTokens = operation('listTokens', {
  ...ofAccount,
  scope: 'read',
  summary: 'List the management tokens of an account, the newest first.',
  input: z.object({ account_id: accountId, ...pageInput }),
  answer: list,
  commands: [listing],
})

export const revokeToken = operation('revokeToken', {
  ...ofAccount,
  summary: 'Revoke a management token of an account immediately.',
  input: z.object({ id: z.string() }),
  answer: token,
})

export const createInstallationToken = operation('createInstallationToken', {
  ...ofInstallation,
  summary: 'Create a management token of the installation.',
  input: z.object(wanted),
  answer: created,
  isSensitive: true,
  isSecret: true,
  isIdempotent: true,
  status: 201,
  commands: [create],
})

export const listInstallationTokens = operation('listInstallationTokens', {
  ...ofInstallation,
  scope: 'read',
  summary: 'List the management tokens of the installation, the newest first.',
  input: z.object(pageInput),
  answer: list,
  commands: [listing],
})

export const revokeInstallationToken = operation('revokeInstallationToken', {
  ...ofInstallation,
  summary: 'Revoke a management token of the installation immediately.',
  input: z.object({ id: z.string() }),
  answer: token,
  commands: [
    {
      words: 'token revoke',
      summary: 'Revoke a management token immediately.',
      effect: 'This would revoke the token {name} ({id}) for good, and programs that use it would be refused',
      nulls,
    },
  ],
})
