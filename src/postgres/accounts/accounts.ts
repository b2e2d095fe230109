/** Accounts as PostgreSQL keeps them. */

import type { Account, AccountKind, WalletTotals } from '../../../schemas/accounts/account.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { Refusal } from '../billing/refusal.ts'
import { type EntryRow, toLedgerEntry, toWallet, type WalletRow } from '../billing/wallet-rows.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'
import { recordCredit, recordOperation } from './audit-record.ts'

export interface AccountWithWallet {
  readonly account: Account
  readonly wallet: WalletTotals
}

export interface NewAccount {
  readonly name: string
  /** Default: personal. */
  readonly kind?: AccountKind
  /** Trial credit; 0 leaves no ledger entry. */
  readonly credit: Credits
}

/** An absent field stays unchanged; null removes the limit. */
export interface LimitChanges {
  readonly requestsPerMinute?: number | null
  readonly concurrency?: number | null
}

export type AccountRow = SnakeCase<Account>

export const toAccount = (row: AccountRow): Account => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  enabled: row.enabled,
  requestsPerMinute: row.requests_per_minute,
  concurrency: row.concurrency,
  allowedModels: row.allowed_models,
  createdAt: row.created_at,
})

export const accountNotFound = (accountId: string): Refusal =>
  new Refusal('account_not_found', `There is no account ${accountId}`)

const withWallet = (row: AccountRow & WalletRow): AccountWithWallet => ({
  account: toAccount(row),
  wallet: toWallet(row),
})

export async function createAccount(
  sql: Queryable,
  { name, kind, credit }: NewAccount,
): Promise<AccountWithWallet> {
  if (credit < 0n) throw new Refusal('invalid_amount', 'The trial credit of an account is never negative')
  const id = newId('acc')
  return inTransaction(sql, async (transaction) => {
    const [row] = await transaction<[AccountRow & WalletRow]>`
      WITH account AS (
        INSERT INTO accounts (id, name, kind) VALUES (${id}, ${name}, ${kind ?? 'personal'}) RETURNING *
      ), wallet AS (
        INSERT INTO wallets (account_id, balance) SELECT id, ${credit} FROM account RETURNING *
      )
      SELECT * FROM account JOIN wallet ON wallet.account_id = account.id`
    if (credit > 0n) {
      const [entry] = await transaction<[EntryRow]>`
        INSERT INTO ledger_entries (account_id, kind, amount, actor)
        VALUES (${id}, 'trial', ${credit}, audit_actor()) RETURNING *`
      await recordCredit(transaction, toLedgerEntry(entry), 0n)
    }
    return withWallet(row)
  })
}

/** Returns names by id, of those accounts that exist. */
export async function readAccountNames(
  sql: Queryable,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; name: string }[]>`
    SELECT id, name FROM accounts WHERE id = ANY (${accountIds as string[]}::text[])`
  return new Map(rows.map(({ id, name }) => [id, name]))
}

export interface AccountListing extends Listing {
  /** A part of the id or the name. Default: every account. */
  readonly search?: string | null
}

/** Lists accounts in the order of their ids. */
export async function listAccounts(
  sql: Queryable,
  { search = null, after = null, limit = null }: AccountListing = {},
): Promise<AccountWithWallet[]> {
  const rows = await sql<(AccountRow & WalletRow)[]>`
    SELECT * FROM accounts AS a JOIN wallets AS w ON w.account_id = a.id
    WHERE ${after === null ? sql`true` : sql`a.id > ${after}`}
      AND ${search === null ? sql`true` : sql`position(lower(${search}) IN lower(a.id || ' ' || a.name)) > 0`}
    ORDER BY a.id LIMIT ${limit}`
  return rows.map(withWallet)
}

/** Lists accounts whose balance is below zero, the lowest first. */
export async function listNegativeAccounts(sql: Queryable, limit: number): Promise<AccountWithWallet[]> {
  const rows = await sql<(AccountRow & WalletRow)[]>`
    SELECT * FROM accounts AS a JOIN wallets AS w ON w.account_id = a.id
    WHERE w.balance < 0 ORDER BY w.balance, a.id LIMIT ${limit}`
  return rows.map(withWallet)
}

export async function showAccount(sql: Queryable, accountId: string): Promise<AccountWithWallet> {
  const [row] = await sql<(AccountRow & WalletRow)[]>`
    SELECT * FROM accounts AS a JOIN wallets AS w ON w.account_id = a.id WHERE a.id = ${accountId}`
  if (row === undefined) throw accountNotFound(accountId)
  return withWallet(row)
}

/** Records that an operator views the account as its owner sees it. */
export async function recordView(sql: Queryable, accountId: string): Promise<void> {
  await recordOperation(sql, { action: 'account.view', accountId, subjectId: accountId })
}

/** Sets columns of an account. @throws Refusal `account_not_found` */
async function changeAccount(
  sql: Queryable,
  accountId: string,
  changes: ReturnType<Queryable>,
): Promise<AccountWithWallet> {
  const [row] = await sql<(AccountRow & WalletRow)[]>`
    UPDATE accounts AS a SET ${changes}
    FROM wallets AS w WHERE a.id = ${accountId} AND w.account_id = a.id
    RETURNING *`
  if (row === undefined) throw accountNotFound(accountId)
  return withWallet(row)
}

export const setAccountEnabled = (sql: Sql, accountId: string, enabled: boolean) =>
  changeAccount(sql, accountId, sql`enabled = ${enabled}`)

export const renameAccount = (sql: Queryable, accountId: string, name: string) =>
  changeAccount(sql, accountId, sql`name = ${name}`)

export const setAccountLimits = (
  sql: Sql,
  accountId: string,
  { requestsPerMinute, concurrency }: LimitChanges,
) =>
  changeAccount(
    sql,
    accountId,
    sql`
      requests_per_minute = ${requestsPerMinute === undefined ? sql`requests_per_minute` : requestsPerMinute},
      concurrency = ${concurrency === undefined ? sql`concurrency` : concurrency}`,
  )

/** Sets the models that any key of the account may call; null: every model. */
export const setAccountModels = (sql: Sql, accountId: string, allowedModels: readonly string[] | null) =>
  changeAccount(sql, accountId, sql`allowed_models = ${allowedModels as string[] | null}::text[]`)
