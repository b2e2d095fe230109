/**
 * Reservations of the possible cost of calls and tasks under way, for keys with a cap and accounts with a low balance,
 * over all processes. The functions `reserve_cap` and `reserve_wallet` do the work.
 */
import type { Credits } from '../../../schemas/money.ts'
import type { Queryable, Sql } from '../connection.ts'

export interface CapReservation {
  readonly keyId: string
  readonly requestId: string
  readonly amount: Credits
}

export interface WalletReservation {
  readonly accountId: string
  readonly requestId: string
  readonly amount: Credits
}

/** Longer than any call: a reservation outlives its call only where the process died before the journal had it. */
export const CAP_RESERVATION_MINUTES = 30

/** The row of a call that has ended comes, however long the settler is away: until then its cost stays reserved. */
export const CAP_UNBOOKED_HOURS = 24

/**
 * Reserves the amount and returns true, until the call's row is booked; returns false when the rest of the cap does
 * not cover it. Exact over all processes; a request reserves once. Reserves nothing for a key without a cap.
 */
export async function reserveCap(sql: Sql, { keyId, requestId, amount }: CapReservation): Promise<boolean> {
  const [row] = await sql<[{ reserved: boolean }]>`
    SELECT reserve_cap(${keyId}, ${requestId}, ${amount}, make_interval(mins => ${CAP_RESERVATION_MINUTES})) AS reserved`
  return row.reserved
}

/**
 * True and reserved until the call's row is booked, or false: the balance less all reservations does not cover the
 * amount. Exact over all processes that reserve; a request reserves once.
 */
export async function reserveWallet(
  sql: Sql,
  { accountId, requestId, amount }: WalletReservation,
): Promise<boolean> {
  const [row] = await sql<[{ reserved: boolean }]>`
    SELECT reserve_wallet(${accountId}, ${requestId}, ${amount}, make_interval(mins => ${CAP_RESERVATION_MINUTES}))
      AS reserved`
  return row.reserved
}

/** Reserves as `reserveCap` does for a task, as part of the transaction that creates it: until the task ends. */
export async function reserveTaskIn(
  sql: Queryable,
  task: { readonly id: string; readonly keyId: string; readonly hold: Credits },
): Promise<boolean> {
  const [row] = await sql<[{ reserved: boolean }]>`
    SELECT reserve_cap(${task.keyId}, ${task.id}, ${task.hold}, NULL) AS reserved`
  return row.reserved
}

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
