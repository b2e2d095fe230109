/** Operations of knowledge bases and of those who may read them. */
import { z } from 'zod'
import { instantText, operation, pageInput, toListSchema, toPageSchema } from '../operation.ts'

const allows = ['owner', 'admin'] as const
const id = z.string()
const reader_id = z.string().describe('An account, or an agent.')

const base = z.object({
  id,
  account_id: z.string(),
  name: z.string(),
  is_default: z.boolean().describe("The account's own base, which its keys read as `default`."),
  pages: z.int(),
  readers: z.array(z.string()).describe('Accounts and agents that may read it, besides its account.'),
  created_at: instantText,
})

const granted = base.pick({ id: true, name: true, pages: true })

const toChange = { scope: 'knowledge', allows } as const

export const listBases = operation('listBases', {
  summary: 'List the knowledge bases of an account, and those of others that it may read.',
  input: z.object({ account_id: z.string() }),
  answer: {
    name: 'AccountKnowledgeBaseList',
    schema: toListSchema(base).extend({ granted: z.array(granted) }),
  },
  scope: 'read',
  allows,
})

export const listAllBases = operation('listAllBases', {
  summary: 'List the knowledge bases of all accounts, or of one, with their readers.',
  input: z.object({ account_id: z.string().optional(), ...pageInput }),
  answer: { name: 'AllKnowledgeBases', schema: toPageSchema(base) },
  scope: 'read',
  allows: 'operators',
  commands: [{ words: 'kb list', columns: 'id account_id name is_default pages readers created_at' }],
})

export const showBase = operation('showBase', {
  summary: 'Show a knowledge base with its readers.',
  input: z.object({ id }),
  answer: { name: 'KnowledgeBase', schema: base },
  scope: 'read',
  allows,
  commands: [{ words: 'kb show' }],
})

export const createBase = operation('createBase', {
  ...toChange,
  summary: "Create a knowledge base in addition to the account's own, which always exists.",
  input: z.object({
    account_id: z.string(),
    name: z.string().trim().min(1).max(200).describe('Name to show.'),
  }),
  answer: { name: 'CreatedKnowledgeBase', schema: base },
  isIdempotent: true,
  status: 201,
  commands: [{ words: 'kb create', example: '--name Handbook' }],
})

export const grantBase = operation('grantBase', {
  ...toChange,
  summary:
    'Allow an agent, a member of the organization, or another account of yours to read a knowledge base.',
  details: 'Operators may allow any account.',
  input: z.object({ id, reader_id }),
  answer: { name: 'GrantedKnowledgeBase', schema: base },
  commands: [{ words: 'kb grant', names: { reader_id: 'to' } }],
})

export const revokeBase = operation('revokeBase', {
  ...toChange,
  summary: 'Stop an account or agent from reading a knowledge base.',
  input: z.object({ id, reader_id }),
  answer: { name: 'RevokedKnowledgeBase', schema: base },
  commands: [{ words: 'kb revoke', names: { reader_id: 'to' } }],
})

export const deleteBase = operation('deleteBase', {
  ...toChange,
  summary: 'Delete a knowledge base with all its pages for good.',
  input: z.object({ id }),
  answer: { name: 'DeletedKnowledgeBase', schema: base },
  commands: [
    {
      words: 'kb delete',
      effect:
        'This would delete the knowledge base {name} ({id}) for good, with all its pages and files, and agents that use it would lose it',
    },
  ],
})
