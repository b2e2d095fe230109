/** Records as the management API answers them and the command line prints them. */
import type { LedgerEntry, WalletTotals } from '../../schemas/accounts/account.ts'
import type { ApiKey, FormerSecret } from '../../schemas/accounts/key.ts'
import type { KeyRequest, Member } from '../../schemas/accounts/organization.ts'
import type { Invitation, ManagementToken, Passkey, User } from '../../schemas/accounts/people.ts'
import { CURRENCY } from '../../schemas/call-log/row.ts'
import type { Verified } from '../../schemas/management/jobs.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { AccountWithWallet } from '../../src/postgres/accounts/accounts.ts'
import type { AuditEntry } from '../../src/postgres/accounts/audit-record.ts'
import type { AuditReport } from '../../src/postgres/billing/audit-report.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { endingOf } from '../tasks/end/settlement.ts'

/** Returns `remaining`, `used`, `held` and `total` as `GET /v1/key/balance` does; `balance` equals `remaining`. */
export const walletShape = (wallet: WalletTotals) => ({
  account_id: wallet.accountId,
  currency: CURRENCY,
  balance: printCredits(wallet.balance),
  remaining: printCredits(wallet.balance),
  held: printCredits(wallet.held),
  used: printCredits(wallet.used),
  total: printCredits(wallet.balance + wallet.held + wallet.used),
})

export const accountShape = ({ account, wallet }: AccountWithWallet) => ({
  id: account.id,
  name: account.name,
  kind: account.kind,
  enabled: account.enabled,
  requests_per_minute: account.requestsPerMinute,
  concurrency: account.concurrency,
  allowed_models: account.allowedModels,
  created_at: account.createdAt.toISOString(),
  wallet: walletShape(wallet),
})

export const entryShape = (entry: LedgerEntry) => ({
  id: Number(entry.id),
  account_id: entry.accountId,
  kind: entry.kind,
  amount: printCredits(entry.amount),
  ref: entry.ref,
  note: entry.note,
  actor: entry.actor,
  reference: entry.reference,
  created_at: entry.createdAt.toISOString(),
})

const instantOrNull = (at: Date | null): string | null => at?.toISOString() ?? null

const creditsOrNull = (amount: Credits | null): string | null =>
  amount === null ? null : printCredits(amount)

export const memberShape = (member: Member) => ({
  organization_id: member.organizationId,
  account_id: member.accountId,
  name: member.name,
  role: member.role,
  created_at: member.createdAt.toISOString(),
})

export const keyRequestShape = (request: KeyRequest) => ({
  id: request.id,
  organization_id: request.organizationId,
  member_id: request.memberId,
  name: request.name,
  agent_id: request.agentId,
  note: request.note,
  state: request.state,
  decided_by: request.decidedBy,
  decided_at: request.decidedAt?.toISOString() ?? null,
  key_id: request.keyId,
  created_at: request.createdAt.toISOString(),
})

const formerSecretShape = (secret: FormerSecret) => ({
  key_prefix: secret.prefix,
  replaced_at: secret.replacedAt.toISOString(),
  grace_seconds: secret.graceSeconds,
  successor_used_at: instantOrNull(secret.successorUsedAt),
  last_used_at: instantOrNull(secret.lastUsedAt),
  ends_at: secret.endsAt.toISOString(),
})

export const keyShape = (key: ApiKey) => ({
  id: key.id,
  account_id: key.accountId,
  name: key.name,
  kind: key.kind,
  key_prefix: key.prefix,
  allowed_models: key.allowedModels,
  expires_at: key.expiresAt?.toISOString() ?? null,
  requests_per_minute: key.limits?.requestsPerMinute ?? null,
  concurrency: key.limits?.concurrency ?? null,
  allowed_addresses: key.allowedAddresses,
  enabled: key.enabled,
  revoked_at: key.revokedAt?.toISOString() ?? null,
  agent_id: key.agentId,
  member_id: key.grant?.memberId ?? null,
  spend_cap: creditsOrNull(key.grant?.spendCap ?? null),
  spent: creditsOrNull(key.grant?.spent ?? null),
  account_logs: key.accountLogs,
  opens_draft: key.opensDraft,
  revealable: key.revealable,
  former_secret: key.formerSecret && formerSecretShape(key.formerSecret),
  created_at: key.createdAt.toISOString(),
})

export const userShape = (user: User) => ({
  id: user.id,
  email: user.email,
  name: user.name,
  locale: user.locale,
  account_id: user.accountId,
  installation_role: user.installationRole,
  enabled: user.enabled,
  created_at: user.createdAt.toISOString(),
  signed_in_at: user.signedInAt?.toISOString() ?? null,
})

export const passkeyShape = (passkey: Passkey) => ({
  id: passkey.id,
  name: passkey.name,
  created_at: passkey.createdAt.toISOString(),
  last_used_at: instantOrNull(passkey.lastUsedAt),
})

export const invitationShape = (invitation: Invitation) => ({
  id: invitation.id,
  email: invitation.email,
  account_id: invitation.accountId,
  role: invitation.role,
  installation_role: invitation.installationRole,
  created_by: invitation.createdBy,
  created_at: invitation.createdAt.toISOString(),
  expires_at: invitation.expiresAt.toISOString(),
  used_at: instantOrNull(invitation.usedAt),
  revoked_at: instantOrNull(invitation.revokedAt),
})

export const tokenShape = (token: ManagementToken) => ({
  id: token.id,
  prefix: token.prefix,
  name: token.name,
  account_id: token.accountId,
  scopes: token.scopes,
  created_by: token.createdBy,
  created_at: token.createdAt.toISOString(),
  expires_at: token.expiresAt?.toISOString() ?? null,
  last_used_at: token.lastUsedAt?.toISOString() ?? null,
  revoked_at: token.revokedAt?.toISOString() ?? null,
})

export const auditShape = (entry: AuditEntry) => ({
  id: Number(entry.id),
  created_at: entry.at.toISOString(),
  actor: entry.actor,
  action: entry.action,
  account_id: entry.accountId,
  subject_id: entry.subjectId,
  before: entry.before,
  after: entry.after,
})

const timeOf = (epochMs: number): string => new Date(epochMs).toISOString()
const timeOrNull = (epochMs: number | null): string | null => (epochMs === null ? null : timeOf(epochMs))

export const taskShape = (task: Task) => {
  const { code, message } = endingOf(task)
  return {
    id: task.id,
    kind: task.kind,
    state: task.state,
    account_id: task.accountId,
    key_id: task.keyId,
    request_id: task.requestId,
    model: task.model,
    channel_id: task.channelId,
    upstream_model: task.upstreamModel,
    upstream_id: task.upstreamId,
    upstream_state: task.upstreamState,
    hold: printCredits(task.hold),
    cost: creditsOrNull(task.cost),
    error_code: code,
    error_message: message,
    created_at: timeOf(task.submittedAt),
    accepted_at: timeOrNull(task.acceptedAt),
    ended_at: timeOrNull(task.endedAt),
    deadline_at: timeOf(task.deadlineAt),
    attempts: task.attempts.map((attempt) => ({ ...attempt })),
  }
}

/** Returns the report of an audit of all wallets. */
export const auditReportShape = ({
  logTrouble,
  paymentsTrouble,
  differences,
  since,
  ...report
}: AuditReport): Verified => ({
  ...report,
  ...(since !== undefined && { since: since.toISOString() }),
  differences: differences.map((difference) => ({ ...difference })),
  ...(logTrouble !== undefined && { call_log_not_compared: logTrouble }),
  ...(paymentsTrouble !== undefined && { payments_not_compared: paymentsTrouble }),
})
