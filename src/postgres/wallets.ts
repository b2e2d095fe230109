import {
  type LedgerEntry,
  type LedgerKind,
  MINIMUM_TOP_UP,
  type WalletTotals,
} from '../../schemas/account.ts'
import { CHANGES_CHANNEL } from '../../schemas/event.ts'
import { type Credits, parseCredits, printCredits } from '../../schemas/money.ts'
import { accountNotFound, showAccount } from './accounts.ts'
import { recordAct } from './audit-record.ts'
import type { Sql } from './connection.ts'
import { Refusal } from './refusal.ts'
import { inTransaction } from './transaction.ts'
import { type WalletRow, walletOfRow } from './wallet-rows.ts'

export interface EntryRow {
  id: bigint
  account_id: string
  kind: LedgerKind
  amount: Credits
  ref: string | null
  note: string | null
  created_at: Date
}

export const entryOfRow = (row: EntryRow): LedgerEntry => ({
  id: row.id,
  accountId: row.account_id,
  kind: row.kind,
  amount: row.amount,
  ref: row.ref,
  note: row.note,
  createdAt: row.created_at,
})

/** Contract: `Database.topUp`. */
export async function topUp(
  sql: Sql,
  accountId: string,
  amount: Credits,
  note: string | null,
): Promise<{ entry: LedgerEntry; wallet: WalletTotals }> {
  if (amount < parseCredits(MINIMUM_TOP_UP)) {
    throw new Refusal(
      'top_up_too_small',
      `A top-up is at least ${MINIMUM_TOP_UP} credits, not ${printCredits(amount)}`,
    )
  }
  return inTransaction(sql, async (transaction) => {
    const [wallet] = await transaction<WalletRow[]>`
      UPDATE wallets SET balance = balance + ${amount}, version = version + 1
      WHERE account_id = ${accountId} RETURNING *`
    if (wallet === undefined) throw accountNotFound(accountId)
    const [entry] = await transaction<[EntryRow]>`
      INSERT INTO ledger_entries (account_id, kind, amount, note)
      VALUES (${accountId}, 'topup', ${amount}, ${note}) RETURNING *`
    await transaction`SELECT pg_notify(${CHANGES_CHANNEL}, ${`wallet:${accountId}`})`
    await recordAct(transaction, {
      action: 'wallet.topup',
      accountId,
      subjectId: accountId,
      before: { balance: printCredits(wallet.balance - amount) },
      after: { balance: printCredits(wallet.balance), amount: printCredits(amount), note },
    })
    return { entry: entryOfRow(entry), wallet: walletOfRow(wallet) }
  })
}

/** Contract: `Database.listLedger`. */
export async function listLedger(sql: Sql, accountId: string, limit: number): Promise<LedgerEntry[]> {
  const rows = await sql<EntryRow[]>`
    SELECT * FROM ledger_entries WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${limit}`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(entryOfRow)
}

/** Contract: `Database.readWallets`. */
export async function readWallets(sql: Sql, ids: readonly string[]): Promise<WalletTotals[]> {
  const rows = await sql<WalletRow[]>`
    SELECT account_id, balance, held, used, version FROM wallets WHERE account_id = ANY (${ids as string[]}::text[])
    UNION ALL
    SELECT account_id, balance, held, used, version FROM grant_wallets
    WHERE account_id = ANY (${ids as string[]}::text[])`
  return rows.map(walletOfRow)
}
