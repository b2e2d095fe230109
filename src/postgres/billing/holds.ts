/**
 * Money held for unfinished work. The entries of each hold sum to minus the charge: `hold` when it is placed;
 * `release` (never accepted, or done and charged) or `refund` (failed) of the whole amount when it is closed; `charge`
 * when the work cost something. See docs/api-rules.md, "Tasks".
 */
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import type { Credits } from '../../../schemas/money.ts'
import { accountNotFound } from '../accounts/accounts.ts'
import type { Queryable } from '../connection.ts'
import { Refusal } from './refusal.ts'
import { toWallet, type WalletRow } from './wallet-rows.ts'

interface Hold {
  /** The task that the money is held for. */
  readonly ref: string
  readonly accountId: string
  readonly amount: Credits
}

/** `duplicate`: this was done before, nothing changed. */
type PlaceOutcome = 'placed' | 'duplicate' | 'insufficient'

interface HoldRow {
  ref: string
  account_id: string
  amount: Credits
  state: 'open' | 'settled' | 'returned'
  charged: Credits
}

/** The end of a hold: the kind of the entry that returns it, and the charge. */
export interface Ending {
  readonly state: 'settled' | 'returned'
  readonly entry: 'release' | 'refund'
  readonly cost: Credits
}

export async function lockWallet(sql: Queryable, accountId: string): Promise<WalletTotals> {
  const [row] = await sql<WalletRow[]>`SELECT * FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
  if (row === undefined) throw accountNotFound(accountId)
  return toWallet(row)
}

async function findHold(sql: Queryable, ref: string): Promise<HoldRow | undefined> {
  const [row] = await sql<HoldRow[]>`SELECT * FROM holds WHERE ref = ${ref}`
  return row
}

/**
 * Takes the amount out of the balance, unless it is more than the balance less what calls have reserved, as part of a transaction that has more to do.
 * The wallet stays locked until its end.
 */
export async function placeHold(
  sql: Queryable,
  { ref, accountId, amount }: Hold,
): Promise<{ outcome: PlaceOutcome; wallet: WalletTotals }> {
  // Other transactions on this account's money wait here; the values read below stay valid until the commit.
  const wallet = await lockWallet(sql, accountId)
  const known = await findHold(sql, ref)
  if (known !== undefined) {
    if (known.account_id !== accountId || known.amount !== amount)
      throw new Refusal('hold_conflict', `There is another hold for ${ref} already`)
    return { outcome: 'duplicate', wallet }
  }
  const [{ reserved }] = await sql<[{ reserved: Credits }]>`SELECT reserved_in(${accountId}) AS reserved`
  if (amount > wallet.balance - reserved) return { outcome: 'insufficient', wallet }
  const [changed] = await sql<[WalletRow]>`
    WITH hold AS (
      INSERT INTO holds (ref, account_id, amount) VALUES (${ref}, ${accountId}, ${amount})
    ), entry AS (
      INSERT INTO ledger_entries (account_id, kind, amount, ref)
      VALUES (${accountId}, 'hold', ${-amount}, ${ref})
    )
    UPDATE wallets SET balance = balance - ${amount}, held = held + ${amount}, version = version + 1
    WHERE account_id = ${accountId} RETURNING *, ${reserved}::bigint AS reserved`
  return { outcome: 'placed', wallet: toWallet(changed) }
}

/**
 * Returns an open hold as part of a transaction that books its `charged` separately. The caller has ensured that no
 * other transaction closes it.
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
    ), reservation AS (
      DELETE FROM cap_reservations WHERE ref = ${ref}
    ), entry AS (
      INSERT INTO ledger_entries (account_id, kind, amount, ref) SELECT account_id, ${entry}, amount, ${ref} FROM hold
    )
    UPDATE wallets AS w
    SET balance = w.balance + hold.amount, held = w.held - hold.amount, version = w.version + 1
    FROM hold WHERE w.account_id = hold.account_id RETURNING w.*, reserved_in(w.account_id) AS reserved`
  if (wallet === undefined) throw new Refusal('hold_not_found', `There is no open hold for ${ref}`)
  return toWallet(wallet)
}
