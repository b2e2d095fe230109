/** Records as the command line prints them, with the field names of the HTTP interface. */
import type { LedgerEntry, WalletTotals } from '../../schemas/accounts/account.ts'
import type { ApiKey } from '../../schemas/accounts/key.ts'
import type { KeyRequest, Member } from '../../schemas/accounts/organization.ts'
import { CURRENCY } from '../../schemas/call-log/row.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { AccountWithWallet } from '../postgres/accounts/accounts.ts'
import type { JsonObject } from './output.ts'

/** Returns `remaining`, `used`, `held` and `total` as `GET /v1/key/balance` does; `balance` equals `remaining`. */
export const walletShape = (wallet: WalletTotals) =>
  ({
    account_id: wallet.accountId,
    currency: CURRENCY,
    balance: printCredits(wallet.balance),
    remaining: printCredits(wallet.balance),
    held: printCredits(wallet.held),
    used: printCredits(wallet.used),
    total: printCredits(wallet.balance + wallet.held + wallet.used),
  }) satisfies JsonObject

export const accountShape = ({ account, wallet }: AccountWithWallet) =>
  ({
    id: account.id,
    name: account.name,
    kind: account.kind,
    enabled: account.enabled,
    requests_per_minute: account.requestsPerMinute,
    concurrency: account.concurrency,
    allowed_models: account.allowedModels,
    created_at: account.createdAt.toISOString(),
    wallet: walletShape(wallet),
  }) satisfies JsonObject

export const entryShape = (entry: LedgerEntry) =>
  ({
    id: Number(entry.id),
    account_id: entry.accountId,
    kind: entry.kind,
    amount: printCredits(entry.amount),
    ref: entry.ref,
    note: entry.note,
    actor: entry.actor,
    reference: entry.reference,
    created_at: entry.createdAt.toISOString(),
  }) satisfies JsonObject

const creditsOrNull = (amount: Credits | null): string | null =>
  amount === null ? null : printCredits(amount)

export const memberShape = (member: Member) =>
  ({
    organization_id: member.organizationId,
    account_id: member.accountId,
    name: member.name,
    role: member.role,
    created_at: member.createdAt.toISOString(),
  }) satisfies JsonObject

export const keyRequestShape = (request: KeyRequest) =>
  ({
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
  }) satisfies JsonObject

export const keyShape = (key: ApiKey) =>
  ({
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    kind: key.kind,
    key_prefix: key.prefix,
    allowed_models: key.allowedModels,
    expires_at: key.expiresAt?.toISOString() ?? null,
    enabled: key.enabled,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    agent_id: key.agentId,
    member_id: key.grant?.memberId ?? null,
    spend_cap: creditsOrNull(key.grant?.spendCap ?? null),
    spent: creditsOrNull(key.grant?.spent ?? null),
    account_logs: key.accountLogs,
    revealable: key.revealable,
    created_at: key.createdAt.toISOString(),
  }) satisfies JsonObject

/** Replaces null by its meaning, for a reader. */
export const keyInWords = <Shape extends ReturnType<typeof keyShape>>(json: Shape) => ({
  ...json,
  allowed_models: json.allowed_models ?? 'all',
  expires_at: json.expires_at ?? 'never',
})
