/** Records as the management API answers them and the command line prints them. */
import type { LedgerEntry, WalletTotals } from '../../schemas/accounts/account.ts'
import type { ApiKey, FormerSecret } from '../../schemas/accounts/key.ts'
import type { KeyRequest, Member } from '../../schemas/accounts/organization.ts'
import type { Invitation, ManagementToken, Passkey, User } from '../../schemas/accounts/people.ts'
import { CURRENCY } from '../../schemas/call-log/row.ts'
import type { Verified } from '../../schemas/management/jobs.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import { toApiShape } from '../../src/core/json/snake-case.ts'
import type { AccountWithWallet } from '../../src/postgres/accounts/accounts.ts'
import type { AuditEntry } from '../../src/postgres/accounts/audit-record.ts'
import type { AuditReport } from '../../src/postgres/billing/audit-report.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { printAttemptRows, readEnding } from '../tasks/end/settlement.ts'

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
  ...toApiShape(account),
  wallet: walletShape(wallet),
})

export const entryShape = (entry: LedgerEntry) => ({
  ...toApiShape(entry),
  id: Number(entry.id),
  amount: printCredits(entry.amount),
})

export const printInstantOrNull = (at: Date | null): string | null => at?.toISOString() ?? null

const printCreditsOrNull = (amount: Credits | null): string | null =>
  amount === null ? null : printCredits(amount)

export const memberShape = toApiShape<Member>

export const keyRequestShape = toApiShape<KeyRequest>

const formerSecretShape = ({ prefix, ...secret }: FormerSecret) => ({
  key_prefix: prefix,
  ...toApiShape(secret),
})

export const keyShape = ({ prefix, limits, grant, formerSecret, maxPrice, ...key }: ApiKey) => ({
  ...toApiShape(key),
  key_prefix: prefix,
  requests_per_minute: limits?.requestsPerMinute ?? null,
  concurrency: limits?.concurrency ?? null,
  member_id: grant?.memberId ?? null,
  spend_cap: printCreditsOrNull(grant?.spendCap ?? null),
  spent: printCreditsOrNull(grant?.spent ?? null),
  max_price: printCreditsOrNull(maxPrice),
  former_secret: formerSecret && formerSecretShape(formerSecret),
})

export const userShape = toApiShape<User>

export const passkeyShape = (passkey: Passkey) => ({
  id: passkey.id,
  name: passkey.name,
  created_at: passkey.createdAt.toISOString(),
  last_used_at: printInstantOrNull(passkey.lastUsedAt),
})

export const invitationShape = toApiShape<Invitation>

export const tokenShape = toApiShape<ManagementToken>

export const auditShape = ({ at, ...entry }: AuditEntry) => ({
  ...toApiShape(entry),
  id: Number(entry.id),
  created_at: at.toISOString(),
})

export const printInstant = (epochMs: number): string => new Date(epochMs).toISOString()
export const printTimeOrNull = (epochMs: number | null): string | null =>
  epochMs === null ? null : printInstant(epochMs)

export const taskShape = (task: Task) => {
  const { code, message } = readEnding(task)
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
    cost: printCreditsOrNull(task.cost),
    error_code: code,
    error_message: message,
    created_at: printInstant(task.submittedAt),
    accepted_at: printTimeOrNull(task.acceptedAt),
    ended_at: printTimeOrNull(task.endedAt),
    deadline_at: printInstant(task.deadlineAt),
    attempts: printAttemptRows(task),
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
