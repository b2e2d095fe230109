/**
 * Reservations of the possible cost of calls and tasks under way, for keys with a spend cap or a budget and accounts with
 * a low balance, over all processes. The functions `reserve_spend` and `reserve_wallet` do the work.
 */
import type { SpendRefusal } from '../../../schemas/accounts/budget.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { Queryable, Sql } from '../connection.ts'
import { printJson } from '../json.ts'
import type { NewTask } from '../tasks/types.ts'
import { type BudgetJson, parseBudget } from './budget-rows.ts'

/** The journal of a reserved call, so that the call can be closed when its machine never comes back. */
interface ReservedIn {
  readonly journalId: string
  /** The call as the journal has it. */
  readonly admission: object
}

export interface SpendReservation {
  readonly keyId: string
  readonly requestId: string
  readonly amount: Credits
  /** Epoch milliseconds. The call counts in the period of this instant, whenever it ends. */
  readonly submittedAt: number
  readonly callMs?: number
  readonly reservedIn?: ReservedIn
}

export interface WalletReservation {
  readonly accountId: string
  readonly requestId: string
  readonly amount: Credits
  /** The longest time that the call may take. */
  readonly callMs?: number
  readonly reservedIn?: ReservedIn
}

/**
 * Counted from the end of a call's time: a reservation outlives its call only where the process died before the journal
 * had it.
 */
export const CAP_RESERVATION_MINUTES = 30
const MS_PER_SECOND = 1000

/** The row of an ended call comes, however long the settler is down. Until then its cost stays reserved. */
const CAP_UNBOOKED_HOURS = 24

/**
 * Reserves the amount, in the key's cap and in every budget that covers it together, until the call's row is booked;
 * returns the limit that leaves too little, or null. Exact over all processes; a request reserves once. Reserves nothing
 * for a key without limits.
 */
export const reserveSpend = (sql: Sql, wanted: SpendReservation): Promise<SpendRefusal | null> =>
  reserveIn(sql, { ...wanted, ref: wanted.requestId, minutes: CAP_RESERVATION_MINUTES })

interface Reserving extends Omit<SpendReservation, 'requestId'> {
  readonly ref: string
  /** Null: until the task ends. */
  readonly minutes: number | null
}

async function reserveIn(
  sql: Queryable,
  { ref, keyId, amount, submittedAt, minutes, callMs = 0, reservedIn }: Reserving,
): Promise<SpendRefusal | null> {
  const [{ refused_by, budget }] = await sql<
    [{ refused_by: SpendRefusal['by'] | null; budget: RefusedBudget }]
  >`
    SELECT * FROM reserve_spend(
      ${ref}, ${keyId}, ${amount}, ${submittedAt}, make_interval(mins => ${minutes}, secs => ${callMs / MS_PER_SECOND}),
      ${readJournalId(reservedIn)},
      ${readAdmission(reservedIn)}::text::json)`
  if (refused_by !== 'budget') return refused_by && { by: refused_by }
  return { by: refused_by, budget: parseBudget(budget), resetsAt: budget.resets_at }
}

const readJournalId = (reservedIn: ReservedIn | undefined): string | null => reservedIn?.journalId ?? null
const readAdmission = (reservedIn: ReservedIn | undefined): string | null =>
  reservedIn === undefined ? null : printJson(reservedIn.admission)

type RefusedBudget = BudgetJson & { readonly resets_at: number }

/**
 * True and reserved until the call's row is booked, or false: the balance less all reservations does not cover the
 * amount. Exact over all processes that reserve; a request reserves once.
 */
export async function reserveWallet(
  sql: Sql,
  { accountId, requestId, amount, callMs = 0, reservedIn }: WalletReservation,
): Promise<boolean> {
  const [row] = await sql<[{ reserved: boolean }]>`
    SELECT reserve_wallet(
      ${accountId}, ${requestId}, ${amount},
      make_interval(mins => ${CAP_RESERVATION_MINUTES}, secs => ${callMs / MS_PER_SECOND}), ${readJournalId(reservedIn)},
      ${readAdmission(reservedIn)}::text::json) AS reserved`
  return row.reserved
}

/** Reserves as `reserveSpend` does for a task, as part of the transaction that creates it: until the task ends. */
export const reserveTaskIn = (
  sql: Queryable,
  { id, keyId, hold, submittedAt }: Pick<NewTask, 'id' | 'keyId' | 'hold' | 'submittedAt'>,
): Promise<SpendRefusal | null> =>
  reserveIn(sql, { ref: id, keyId, amount: hold, submittedAt, minutes: null })

/** Shrinks the reservation to the cost of an ended call until its row is booked. */
export async function shrinkReservation(sql: Sql, requestId: string, cost: Credits): Promise<void> {
  await sql`
    WITH in_wallet AS (
      UPDATE wallet_reservations
      SET amount = ${cost}, expires_at = now() + make_interval(hours => ${CAP_UNBOOKED_HOURS})
      WHERE ref = ${requestId}
    )
    UPDATE cap_reservations SET amount = ${cost}, expires_at = now() + make_interval(hours => ${CAP_UNBOOKED_HOURS})
    WHERE ref = ${requestId}`
}

/** Releases the reservation of a call that was not sent and gets no row. */
export async function releaseReservation(sql: Sql, requestId: string): Promise<void> {
  await sql`
    WITH in_wallet AS (DELETE FROM wallet_reservations WHERE ref = ${requestId})
    DELETE FROM cap_reservations WHERE ref = ${requestId}`
}

/** Ends the reservation of a task, as part of the transaction that did not make it. */
export async function releaseCap(sql: Queryable, ref: string): Promise<void> {
  await sql`DELETE FROM cap_reservations WHERE ref = ${ref}`
}
