/**
 * Money kept back for work that is not done yet. Each hold leaves entries that sum to minus what was
 * charged: `hold` when it is placed; `release` (never taken on, or done and charged) or `refund` (failed) of
 * the whole amount when it is closed; `charge` when the work cost something. Source: decisions, "Media".
 */
import type { WalletTotals } from '../../schemas/account.ts'
import type { Credits } from '../../schemas/money.ts'
import { accountNotFound } from './accounts.ts'
import type { Queryable, Sql } from './connection.ts'
import { Refusal } from './refusal.ts'
import { inTransaction } from './transaction.ts'
import type { CloseOutcome, Hold, PlaceOutcome } from './types.ts'
import { type WalletRow, walletOfRow } from './wallet-rows.ts'

interface HoldRow {
  ref: string
  account_id: string
  amount: Credits
  state: 'open' | 'settled' | 'returned'
  charged: Credits
}

/** How a hold ends: with the kind of entry that gives it back, and what is charged. */
export interface Ending {
  readonly state: 'settled' | 'returned'
  readonly entry: 'release' | 'refund'
  readonly cost: Credits
}

export async function lockWallet(sql: Queryable, accountId: string): Promise<WalletTotals> {
  const [row] = await sql<WalletRow[]>`SELECT * FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
  if (row === undefined) throw accountNotFound(accountId)
  return walletOfRow(row)
}

async function findHold(sql: Queryable, ref: string): Promise<HoldRow | undefined> {
  const [row] = await sql<HoldRow[]>`SELECT * FROM holds WHERE ref = ${ref}`
  return row
}

/** Contract: `Database.placeHold`. */
export async function placeHold(
  sql: Sql,
  hold: Hold,
): Promise<{ outcome: PlaceOutcome; wallet: WalletTotals }> {
  if (hold.amount < 0n) throw new Refusal('invalid_amount', 'A hold is never negative')
  return inTransaction(sql, (transaction) => placeIn(transaction, hold))
}

/** The same as part of a transaction that has more to do. The wallet stays locked until its end. */
export async function placeIn(
  sql: Queryable,
  { ref, accountId, amount }: Hold,
): Promise<{ outcome: PlaceOutcome; wallet: WalletTotals }> {
  // Whoever touches this account's money waits here; what is read below stays true until the commit.
  const wallet = await lockWallet(sql, accountId)
  const known = await findHold(sql, ref)
  if (known !== undefined) {
    if (known.account_id !== accountId || known.amount !== amount)
      throw new Refusal('hold_conflict', `There is another hold for ${ref} already`)
    return { outcome: 'duplicate', wallet }
  }
  if (amount > wallet.balance) return { outcome: 'insufficient', wallet }
  const [changed] = await sql<[WalletRow]>`
    WITH hold AS (
      INSERT INTO holds (ref, account_id, amount) VALUES (${ref}, ${accountId}, ${amount})
    ), entry AS (
      INSERT INTO ledger_entries (account_id, kind, amount, ref)
      VALUES (${accountId}, 'hold', ${-amount}, ${ref})
    )
    UPDATE wallets SET balance = balance - ${amount}, held = held + ${amount}, version = version + 1
    WHERE account_id = ${accountId} RETURNING *`
  return { outcome: 'placed', wallet: walletOfRow(changed) }
}

/** Contract: `Database.releaseHold`. */
export async function releaseHold(
  sql: Sql,
  ref: string,
  entry: 'release' | 'refund',
): Promise<{ outcome: CloseOutcome; wallet: WalletTotals }> {
  return inTransaction(sql, (transaction) =>
    closeIn(transaction, ref, { state: 'returned', entry, cost: 0n }),
  )
}

/** Contract: `Database.settleHold`. */
export async function settleHold(
  sql: Sql,
  ref: string,
  cost: Credits,
): Promise<{ outcome: CloseOutcome; wallet: WalletTotals }> {
  if (cost < 0n) throw new Refusal('invalid_amount', 'A charge is never negative')
  return inTransaction(sql, (transaction) =>
    closeIn(transaction, ref, { state: 'settled', entry: 'release', cost }),
  )
}

/** The same as part of a transaction that has more to do. */
export async function closeIn(
  sql: Queryable,
  ref: string,
  ending: Ending,
): Promise<{ outcome: CloseOutcome; wallet: WalletTotals }> {
  const { state, entry, cost } = ending
  const found = await findHold(sql, ref)
  if (found === undefined) throw new Refusal('hold_not_found', `There is no hold for ${ref}`)
  const wallet = await lockWallet(sql, found.account_id)
  // Read before the lock: only who moves it on from `open` now has closed it.
  const [hold] = await sql<HoldRow[]>`
    UPDATE holds SET state = ${state}, charged = ${cost}, closed_at = now()
    WHERE ref = ${ref} AND state = 'open' RETURNING *`
  if (hold === undefined) {
    await refuseOtherEnding(sql, ref, ending)
    return { outcome: 'duplicate', wallet }
  }
  const [changed] = await sql<[WalletRow]>`
    WITH entries AS (
      INSERT INTO ledger_entries (account_id, kind, amount, ref)
      SELECT ${hold.account_id}, kind, amount, ${ref}
      FROM (VALUES (${entry}, ${hold.amount}::bigint), ('charge', ${-cost}::bigint)) AS e(kind, amount)
      WHERE kind <> 'charge' OR amount < 0
    )
    UPDATE wallets
    SET balance = balance + ${hold.amount}::bigint - ${cost}::bigint, held = held - ${hold.amount},
        used = used + ${cost}, version = version + 1
    WHERE account_id = ${hold.account_id} RETURNING *`
  return { outcome: 'closed', wallet: walletOfRow(changed) }
}

/**
 * Gives an open hold back as part of a transaction that books what it `charged` by itself. Whoever calls has made sure
 * that nobody else closes it.
 */
export async function giveBackIn(
  sql: Queryable,
  ref: string,
  { state, entry, cost: charged }: Ending,
): Promise<WalletTotals> {
  const [wallet] = await sql<WalletRow[]>`
    WITH hold AS (
      UPDATE holds SET state = ${state}, charged = ${charged}, closed_at = now()
      WHERE ref = ${ref} AND state = 'open' RETURNING account_id, amount
    ), entry AS (
      INSERT INTO ledger_entries (account_id, kind, amount, ref) SELECT account_id, ${entry}, amount, ${ref} FROM hold
    )
    UPDATE wallets AS w
    SET balance = w.balance + hold.amount, held = w.held - hold.amount, version = w.version + 1
    FROM hold WHERE w.account_id = hold.account_id RETURNING w.*`
  if (wallet === undefined) throw new Refusal('hold_not_found', `There is no open hold for ${ref}`)
  return walletOfRow(wallet)
}

/** Closed before: the same ending again is a second delivery, another one is a mistake to hear of. */
async function refuseOtherEnding(sql: Queryable, ref: string, { state, cost }: Ending): Promise<void> {
  const hold = await findHold(sql, ref)
  if (hold === undefined || hold.state !== state || hold.charged !== cost)
    throw new Refusal('hold_conflict', `The hold for ${ref} was closed otherwise: ${hold?.state ?? 'gone'}`)
}
