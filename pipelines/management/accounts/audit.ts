/** Operations that read the audit record. */
import { listAudit, listInstallationAudit } from '../../../schemas/management/accounts/audit.ts'
import { type Context, implement } from '../operation.ts'
import { type PageInput, readNumberCursor, readRange, type TimeInput, toPage } from '../page.ts'
import { auditShape } from '../shapes.ts'

const USER = 'user:'

interface Filters extends PageInput, TimeInput {
  readonly action?: string | undefined
  readonly subject_id?: string | undefined
}

async function list({ database }: Context, of: { readonly accountId?: string }, filters: Filters) {
  const { action, subject_id: subjectId } = filters
  const before = readNumberCursor(filters)
  const entries = await database.auditRecord.list({
    ...of,
    ...(action !== undefined && { action }),
    ...(subjectId !== undefined && { subjectId }),
    ...readRange(filters),
    ...(before !== null && { before }),
    limit: filters.limit + 1,
  })
  // Every account has an entry of its creation.
  if (entries.length === 0 && of.accountId !== undefined) await database.accounts.show(of.accountId)
  const userIds = entries.flatMap(({ actor }) => (actor.startsWith(USER) ? [actor.slice(USER.length)] : []))
  const emails = await database.users.readEmails([...new Set(userIds)])
  const named = entries.map((entry) => ({
    ...auditShape(entry),
    actor_name: emails.get(entry.actor.slice(USER.length)) ?? null,
  }))
  return toPage(named, filters)
}

export const auditOperations = [
  implement(listAudit, (context, { account_id: accountId, ...filters }) =>
    list(context, { accountId }, filters),
  ),
  implement(listInstallationAudit, (context, filters) => list(context, {}, filters)),
]
