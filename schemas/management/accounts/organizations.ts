/** Operations of organizations: members, and keys that they request. */
import { z } from 'zod'
import { MAX_NAME_CHARS, MAX_NOTE_CHARS } from '../../accounts/account.ts'
import { KEY_REQUEST_STATES, memberRole } from '../../accounts/organization.ts'
import { amountText, instantText, operation, pageInput, toPageSchema } from '../operation.ts'
import { expiresAt, keySchema, limitsOfNewKey, spendCap } from './keys.ts'

const accountId = z.string().describe('The organization.')
const id = z.string().describe('The request.')

const memberSchema = z.object({
  organization_id: z.string(),
  account_id: z.string().describe('The personal account of the member.'),
  name: z.string(),
  email: z.string().nullable().describe('null where no user owns the account.'),
  role: memberRole,
  spent: amountText.describe('By all keys of the member.'),
  created_at: instantText,
})

const keyRequestSchema = z.object({
  id: z.string(),
  organization_id: z.string(),
  member_id: z.string(),
  member_email: z.string().nullable().describe('null where no user owns the account.'),
  name: z.string(),
  agent_id: z.string().nullable(),
  note: z.string().nullable(),
  state: z.enum(KEY_REQUEST_STATES),
  decided_by: z
    .string()
    .nullable()
    .describe('The personal account, or the management token (`token:…`), that decided.'),
  decided_at: instantText.nullable(),
  key_id: z.string().nullable(),
  created_at: instantText,
})

const member = { name: 'Member', schema: memberSchema }
const request = { name: 'KeyRequest', schema: keyRequestSchema }
const names = { account_id: 'organization', member_id: 'account' }
const everyMember = ['owner', 'admin', 'billing', 'member'] as const

export const listMembers = operation('listMembers', {
  summary: 'List the members of an organization.',
  input: z.object({ account_id: accountId, ...pageInput }),
  answer: { name: 'MemberList', schema: toPageSchema(memberSchema) },
  scope: 'read',
  allows: ['owner', 'admin', 'billing'],
  commands: [{ words: 'member list', names, columns: 'account_id name email role spent created_at' }],
})

export const putMember = operation('putMember', {
  summary: 'Add a member, or change the role of one. Only an owner can make owners and admins.',
  input: z.object({
    account_id: accountId,
    member_id: z.string().describe('The personal account of the member.'),
    role: memberRole.describe('Role in the organization. Owners and admins approve keys.'),
  }),
  answer: member,
  scope: 'accounts',
  allows: ['owner', 'admin'],
  isSensitive: true,
  commands: [
    {
      words: 'member add',
      names,
      values: { role: 'member' },
      example: '--account acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --role admin',
    },
  ],
})

export const removeMember = operation('removeMember', {
  summary: 'Remove a member, or leave, and revoke the keys issued to that member.',
  details: 'Every member may leave; owners and admins may remove others. The last owner must stay.',
  input: z.object({
    account_id: accountId,
    member_id: z.string().describe('The personal account of the member.'),
  }),
  answer: member,
  scope: 'accounts',
  allows: everyMember,
  commands: [
    {
      words: 'member remove',
      names,
      effect:
        'This would remove {name} ({member_id}) from {account_id} and revoke the keys issued to that member',
      example: '--account acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN',
    },
  ],
})

export const requestKey = operation('requestKey', {
  summary: 'Request a key as a member of an organization.',
  input: z.object({
    account_id: accountId,
    name: z.string().trim().min(1).max(MAX_NAME_CHARS).describe('Name of the key.'),
    agent_id: z.string().nullable().default(null).describe('Agent of the key. null: an employee key.'),
    note: z.string().trim().max(MAX_NOTE_CHARS).nullable().default(null).describe('What it is for.'),
  }),
  answer: request,
  scope: 'keys',
  allows: everyMember,
  isIdempotent: true,
  status: 201,
  commands: [{ words: 'key request', names, by: 'Account id of the member', example: '--name laptop' }],
})

export const listKeyRequests = operation('listKeyRequests', {
  summary: 'List requests for keys, the newest first. Members see their own.',
  input: z.object({
    account_id: accountId,
    state: z.enum(KEY_REQUEST_STATES).optional().describe('Only requests in this state.'),
    ...pageInput,
  }),
  answer: { name: 'KeyRequestList', schema: toPageSchema(keyRequestSchema) },
  scope: 'read',
  allows: everyMember,
  commands: [
    {
      words: 'key requests',
      names,
      columns: 'id member_id name agent_id state decided_by key_id created_at',
    },
  ],
})

export const approveKey = operation('approveKey', {
  summary: 'Issue the key that a member requested, with a spend cap. The member reveals it.',
  input: z.object({
    account_id: accountId,
    id,
    spend_cap: spendCap,
    allowed_models: z.array(z.string()).nullable().default(null).describe('Model ids. null: every model.'),
    expires_at: expiresAt.default(null),
    ...limitsOfNewKey,
  }),
  answer: {
    name: 'IssuedKey',
    schema: keySchema.extend({ request: keyRequestSchema }),
  },
  scope: 'keys',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'key approve',
      by: 'Account id of an admin of the organization',
      options:
        'spend_cap allowed_models expires_at requests_per_minute concurrency allowed_addresses max_price',
      example: 'kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF --spend-cap 50',
    },
  ],
})

export const denyKey = operation('denyKey', {
  summary: 'Refuse the key that a member requested.',
  input: z.object({ account_id: accountId, id }),
  answer: request,
  scope: 'keys',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'key deny',
      by: 'Account id of an admin of the organization',
      options: '',
      example: 'kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    },
  ],
})
