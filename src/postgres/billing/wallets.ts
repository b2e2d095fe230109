import { type LedgerEntry, MINIMUM_TOP_UP, type WalletTotals } from '../../../schemas/accounts/account.ts'
import { CHANGES_CHANNEL } from '../../../schemas/events/event.ts'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { showAccount } from '../accounts/accounts.ts'
import { recordCredit } from '../accounts/audit-record.ts'
import type { Queryable, Sql } from '../connection.ts'
import { readTakenBefore } from '../partitions/make.ts'
import { inTransaction } from '../transaction.ts'
import { lockWallet } from './holds.ts'
import { Refusal } from './refusal.ts'
import { type EntryRow, toLedgerEntry, toWallet, type WalletRow } from './wallet-rows.ts'

export interface TopUpOptions {
  readonly note?: string | null
  /** The same reference never counts twice in an account. */
  readonly reference?: string | null
}

export interface AdjustmentOptions {
  readonly reason: string
  /** As of a top-up. */
  readonly reference?: string | null
}

export interface Credited {
  readonly entry: LedgerEntry
  readonly wallet: WalletTotals
  /** The reference was booked before: `entry` is the one of then, and nothing was changed. */
  readonly isRepeated: boolean
}

/**
 * @throws Refusal `top_up_too_small` under 404.4 credits; `reference_conflict` where another amount or kind of entry
 * has the reference.
 */
export async function topUp(
  sql: Sql,
  accountId: string,
  amount: Credits,
  { note = null, reference = null }: TopUpOptions = {},
): Promise<Credited> {
  if (amount < parseCredits(MINIMUM_TOP_UP)) {
    throw new Refusal(
      'top_up_too_small',
      `A top-up is at least ${MINIMUM_TOP_UP} credits, not ${printCredits(amount)}`,
    )
  }
  return credit(sql, { accountId, kind: 'topup', amount, note, reference })
}

/**
 * Changes the balance in either direction; it may fall below zero.
 * @throws Refusal `invalid_amount` for 0, `reference_conflict`
 */
export async function adjust(
  sql: Sql,
  accountId: string,
  amount: Credits,
  { reason, reference = null }: AdjustmentOptions,
): Promise<Credited> {
  if (amount === 0n) throw new Refusal('invalid_amount', 'An adjustment of 0 credits changes nothing')
  return credit(sql, { accountId, kind: 'adjustment', amount, note: reason, reference })
}

export interface RefundOptions {
  /** Null: all that was charged. */
  readonly amount: Credits | null
  readonly reason: string
}

/**
 * Gives back the charge of a call or a task, or a part of it, once: an adjustment that names the call. What the key has
 * spent of its cap stays spent.
 * @throws Refusal `charge_not_found`; `invalid_amount` above the charge; `refunded_already` with another amount
 */
export const refund = (sql: Sql, accountId: string, ref: string, { amount, reason }: RefundOptions) =>
  inTransaction(sql, async (transaction): Promise<Credited> => {
    // Two refunds at once: the second waits here, and finds the entry of the first.
    const wallet = await lockWallet(transaction, accountId)
    const entries = await transaction<EntryRow[]>`
      SELECT * FROM ledger_entries
      WHERE account_id = ${accountId} AND ref = ${ref} AND kind IN ('charge', 'adjustment')`
    const charge = entries.find(({ kind }) => kind === 'charge')
    const earlier = entries.find(({ kind }) => kind === 'adjustment')
    // Retention takes charges away, and leaves refunds.
    if (charge === undefined && earlier === undefined) throw await chargeNotFound(transaction, accountId, ref)
    const charged = charge === undefined ? earlier!.amount : -charge.amount
    const wanted = amount ?? charged
    if (earlier !== undefined) {
      if (earlier.amount === wanted) return { entry: toLedgerEntry(earlier), wallet, isRepeated: true }
      throw new Refusal(
        'refunded_already',
        `${ref} was refunded already: ${printCredits(earlier.amount)} credits, entry ${earlier.id}`,
      )
    }
    if (wanted <= 0n || wanted > charged)
      throw new Refusal(
        'invalid_amount',
        `A refund of ${ref} is more than 0 and at most ${printCredits(charged)} credits, not ${printCredits(wanted)}`,
      )
    return credit(transaction, {
      accountId,
      kind: 'adjustment',
      amount: wanted,
      note: reason,
      reference: null,
      ref,
    })
  })

async function chargeNotFound(sql: Queryable, accountId: string, ref: string): Promise<Refusal> {
  const since = await readTakenBefore(sql, 'ledger_entries', ref)
  const reason =
    since === null
      ? ''
      : `: the charges of before ${since.toISOString()} were taken away by retention. Adjust the wallet instead`
  return new Refusal('charge_not_found', `No charge of ${ref} is in the ledger of ${accountId}${reason}`)
}

/** Returns the refund of a call or a task; null without one. */
export async function findRefund(
  sql: Queryable,
  accountId: string,
  ref: string,
): Promise<LedgerEntry | null> {
  const [row] = await sql<EntryRow[]>`
    SELECT * FROM ledger_entries WHERE account_id = ${accountId} AND ref = ${ref} AND kind = 'adjustment'`
  return row === undefined ? null : toLedgerEntry(row)
}

type Credit = Pick<LedgerEntry, 'accountId' | 'amount' | 'note' | 'reference'> & {
  readonly kind: 'topup' | 'adjustment' | 'reversal'
  /** The call or task of a refund. */
  readonly ref?: string
}

/**
 * Books credits with their entry in the ledger and in the audit record; once for each reference.
 * @throws Refusal `reference_conflict`
 */
export const credit = (sql: Queryable, wanted: Credit): Promise<Credited> =>
  inTransaction(sql, async (transaction) => {
    const { accountId, kind, amount, note, reference, ref = null } = wanted
    // The same reference twice at once: the second waits here, and finds the entry of the first.
    const before = await lockWallet(transaction, accountId)
    const known = reference === null ? null : await findEntryByReference(transaction, accountId, reference)
    if (known !== null) {
      if (known.kind === kind && known.amount === amount)
        return { entry: known, wallet: before, isRepeated: true }
      throw new Refusal(
        'reference_conflict',
        `The reference ${JSON.stringify(reference)} belongs to another entry of ${accountId}: ` +
          `${known.kind} of ${printCredits(known.amount)} credits, entry ${known.id}`,
      )
    }
    const [wallet] = await transaction<[WalletRow]>`
      UPDATE wallets SET balance = balance + ${amount}, version = version + 1
      WHERE account_id = ${accountId} RETURNING *, reserved_in(account_id) AS reserved`
    const [entry] = await transaction<[EntryRow]>`
      INSERT INTO ledger_entries (account_id, kind, amount, ref, note, actor, reference)
      VALUES (${accountId}, ${kind}, ${amount}, ${ref}, ${note}, audit_actor(), ${reference}) RETURNING *`
    await transaction`SELECT pg_notify(${CHANGES_CHANNEL}, ${`wallet:${accountId}`})`
    await recordCredit(transaction, toLedgerEntry(entry), before.balance)
    return { entry: toLedgerEntry(entry), wallet: toWallet(wallet), isRepeated: false }
  })

async function findEntryByReference(
  sql: Queryable,
  accountId: string,
  reference: string,
): Promise<LedgerEntry | null> {
  const [row] = await sql<EntryRow[]>`
    SELECT * FROM ledger_entries WHERE account_id = ${accountId} AND reference = ${reference}`
  return row === undefined ? null : toLedgerEntry(row)
}

export interface LedgerQuery {
  readonly before: bigint | null
  readonly limit: number
  readonly kind?: LedgerEntry['kind'] | undefined
  /** Such as 2030-01-31. */
  readonly day?: string | undefined
  /** In which the day begins; default: UTC. */
  readonly timezone?: string | undefined
  /** Part of the note, the reference, or the id of the call or task. */
  readonly search?: string | undefined
}

/**
 * Lists the ledger entries before an id, the newest first.
 * @throws Refusal `account_not_found`
 */
export async function readLedger(
  sql: Queryable,
  accountId: string,
  { before, limit, kind, day, timezone = 'UTC', search }: LedgerQuery,
): Promise<LedgerEntry[]> {
  const has = (column: 'note' | 'reference' | 'ref') =>
    sql`strpos(lower(${sql(column)}), lower(${search!})) > 0`
  const rows = await sql<EntryRow[]>`
    SELECT * FROM ledger_entries
    WHERE account_id = ${accountId} AND ${before === null ? sql`true` : sql`id < ${before}`}
      AND ${kind === undefined ? sql`true` : sql`kind = ${kind}`}
      AND ${
        day === undefined
          ? sql`true`
          : sql`created_at >= ${day}::timestamp AT TIME ZONE ${timezone}
              AND created_at < (${day}::timestamp + interval '1 day') AT TIME ZONE ${timezone}`
      }
      AND ${search === undefined ? sql`true` : sql`(${has('note')} OR ${has('reference')} OR ${has('ref')})`}
    ORDER BY id DESC LIMIT ${limit}`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(toLedgerEntry)
}

export interface LedgerMonth {
  /** Such as 2030-01. */
  readonly month: string
  /** In which days begin. */
  readonly timezone: string
}

export interface LedgerDay {
  /** Such as 2030-01-31. */
  readonly day: string
  /** At the end of the day. */
  readonly balance: Credits
  readonly kinds: readonly {
    readonly kind: LedgerEntry['kind']
    readonly entries: number
    readonly amount: Credits
  }[]
}

/**
 * Sums up the entries of a month by day and kind, the newest first. The balance of a day is the present one without
 * what came later, so it is right although earlier months may be gone.
 * @throws Refusal `account_not_found`
 */
export async function sumLedgerMonth(
  sql: Queryable,
  accountId: string,
  { month, timezone }: LedgerMonth,
): Promise<LedgerDay[]> {
  const first = sql`${`${month}-01`}::timestamp`
  const rows = await sql<
    { day: string; kind: LedgerEntry['kind']; entries: number; amount: string; closing: string }[]
  >`
    WITH bounds AS (SELECT ${first} AT TIME ZONE ${timezone} AS begins,
      (${first} + interval '1 month') AT TIME ZONE ${timezone} AS ends)
    SELECT to_char(created_at AT TIME ZONE ${timezone}, 'YYYY-MM-DD') AS day, kind, count(*)::int AS entries,
      sum(amount)::text AS amount,
      ((SELECT balance FROM wallets WHERE account_id = ${accountId}) - coalesce(
        (SELECT sum(amount) FROM ledger_entries WHERE account_id = ${accountId} AND created_at >= (SELECT ends FROM bounds)),
        0))::text AS closing
    FROM ledger_entries
    WHERE account_id = ${accountId} AND created_at >= (SELECT begins FROM bounds) AND created_at < (SELECT ends FROM bounds)
    GROUP BY 1, 2 ORDER BY 1 DESC, 2`
  if (rows.length === 0) await showAccount(sql, accountId)
  let balance = BigInt(rows[0]?.closing ?? 0)
  return [...Map.groupBy(rows, ({ day }) => day)].map(([day, same]) => {
    const kinds = same.map(({ kind, entries, amount }) => ({ kind, entries, amount: BigInt(amount) }))
    const closing = balance
    balance -= kinds.reduce((sum, { amount }) => sum + amount, 0n)
    return { day, balance: closing, kinds }
  })
}

/** Totals of those accounts that exist, of those keys that have a cap, and of the current periods of budgets. */
export async function readWallets(sql: Sql, ids: readonly string[]): Promise<WalletTotals[]> {
  const rows = await sql<WalletRow[]>`
    SELECT account_id, balance, held, used, version, reserved_in(account_id) AS reserved
    FROM wallets WHERE account_id = ANY (${ids as string[]}::text[])
    UNION ALL
    SELECT account_id, balance, held, used, version, NULL FROM grant_wallets
    WHERE account_id = ANY (${ids as string[]}::text[])
    UNION ALL
    SELECT *, NULL FROM budget_wallets(${ids as string[]}::text[])`
  return rows.map(toWallet)
}
