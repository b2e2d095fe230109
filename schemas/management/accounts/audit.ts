/** Operations of the audit record. */
import { z } from 'zod'
import { instantText, operation, pageInput, timeInput, toPageSchema } from '../operation.ts'

const auditEntrySchema = z.object({
  id: z.int(),
  created_at: instantText,
  actor: z.string().describe('A user, a token, an API key, an account, the command line or the service.'),
  actor_name: z.string().nullable().describe('The email address of a user.'),
  action: z.string().describe('Such as `key.revoke`.'),
  account_id: z.string().nullable(),
  subject_id: z.string(),
  before: z.unknown().describe('The changed fields before the operation, without secrets.'),
  after: z.unknown().describe('The same after it.'),
})

const filters = {
  action: z
    .string()
    .max(100)
    .optional()
    .describe('Only this action, or actions that begin with it, such as `key.`.'),
  subject_id: z
    .string()
    .max(200)
    .optional()
    .describe('Only changes of this key, member, request, agent, knowledge base or account.'),
  ...timeInput,
  ...pageInput,
}
const answer = { name: 'AuditPage', schema: toPageSchema(auditEntrySchema) }

export const listAudit = operation('listAudit', {
  summary: 'List the operations in an account, newest first.',
  input: z.object({ account_id: z.string(), ...filters }),
  answer,
  scope: 'read',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'audit',
      summary: 'List what operators and members changed, the newest first, with the differences.',
      limit: 50,
      example: '--since 2030-01-31 --limit 20',
    },
  ],
})

export const listInstallationAudit = operation('listInstallationAudit', {
  summary: 'List the operations in the whole installation, newest first.',
  input: z.object(filters),
  answer,
  scope: 'read',
  allows: 'operators',
  commands: [{ words: 'audit', limit: 50 }],
})
