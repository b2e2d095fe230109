/** Automatic top-ups: settings, and the start of an attempt, one at a time for each account over all processes. */
import { type Credits, printCredits } from '../../../schemas/money.ts'
import {
  type AutomaticTopUp,
  MAX_FAILURES,
  type OffReason,
  type Payment,
  type Price,
} from '../../../schemas/payments/payment.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { recordEvent } from '../notifications/outbox.ts'
import { inTransaction } from '../transaction.ts'
import { listMethods } from './methods.ts'
import { createPayment, findCustomer } from './payments.ts'
import { type PaymentRow, selectPayments, toPayment } from './rows.ts'

/** After the first failure; each further one doubles it. */
const RETRY_HOURS = 1
/** Accounts that one search finds. */
const MAX_FOUND = 100
const CLAIM_SECONDS = 30

type AutomaticRow = SnakeCase<Omit<AutomaticTopUp, 'isEnabled'>> & { enabled: boolean }

const toAutomatic = (row: AutomaticRow): AutomaticTopUp => ({
  accountId: row.account_id,
  isEnabled: row.enabled,
  threshold: row.threshold,
  amount: row.amount,
  monthlyMaximum: row.monthly_maximum,
  failures: row.failures,
  offReason: row.off_reason,
  waitsUntil: row.waits_until,
  waitsFor: row.waits_for,
})

/** Returns the settings of an account; null until they are set. */
export async function findAutomatic(sql: Queryable, accountId: string): Promise<AutomaticTopUp | null> {
  const [row] = await sql<AutomaticRow[]>`SELECT * FROM automatic_topups WHERE account_id = ${accountId}`
  return row === undefined ? null : toAutomatic(row)
}

export type AutomaticSettings = Pick<
  AutomaticTopUp,
  'accountId' | 'isEnabled' | 'threshold' | 'amount' | 'monthlyMaximum'
>

/**
 * Stores the settings that the customer chose, and resets the count of failures.
 * @throws Refusal `method_missing` where no card is saved
 */
export async function setAutomatic(sql: Queryable, wanted: AutomaticSettings): Promise<AutomaticTopUp> {
  const { accountId, isEnabled, threshold, amount, monthlyMaximum } = wanted
  if (isEnabled && (await listMethods(sql, accountId)).length === 0)
    throw new Refusal('method_missing', 'Automatic top-ups need a saved card: save one first')
  const [row] = await sql<[AutomaticRow]>`
    INSERT INTO automatic_topups (account_id, enabled, threshold, amount, monthly_maximum)
    VALUES (${accountId}, ${isEnabled}, ${threshold}, ${amount}, ${monthlyMaximum})
    ON CONFLICT (account_id) DO UPDATE SET enabled = excluded.enabled, threshold = excluded.threshold,
      amount = excluded.amount, monthly_maximum = excluded.monthly_maximum,
      failures = 0, off_reason = NULL, waits_until = NULL, waits_for = NULL
    RETURNING *`
  return toAutomatic(row)
}

/**
 * Finds accounts whose balance is below their threshold, and which neither wait nor have an attempt under way.
 * @param accountId looks only at this one
 */
export async function findLowBalances(sql: Queryable, accountId: string | null = null): Promise<string[]> {
  const rows = await sql<{ account_id: string }[]>`
    SELECT s.account_id FROM automatic_topups AS s
    JOIN wallets AS w ON w.account_id = s.account_id AND w.balance < s.threshold
    JOIN accounts AS a ON a.id = s.account_id AND a.enabled
    WHERE s.enabled AND (s.waits_until IS NULL OR s.waits_until <= now())
      ${accountId === null ? sql`` : sql`AND s.account_id = ${accountId}`}
      AND NOT EXISTS (
        SELECT FROM payments WHERE account_id = s.account_id AND kind = 'automatic'
          AND state IN ('created', 'open', 'confirming'))
    LIMIT ${MAX_FOUND}`
  return rows.map(({ account_id }) => account_id)
}

/** Locks the settings of an account, so that only one attempt runs at a time. */
export async function lockAutomatic(sql: Queryable, accountId: string): Promise<AutomaticTopUp | null> {
  const [row] = await sql<AutomaticRow[]>`
    SELECT * FROM automatic_topups WHERE account_id = ${accountId} FOR UPDATE`
  return row === undefined ? null : toAutomatic(row)
}

/** Returns the credits of this month's automatic payments: begun in it, or paid in it. UTC. */
async function sumCreditsOfMonth(sql: Queryable, accountId: string): Promise<Credits> {
  const [row] = await sql<[{ credits: bigint }]>`
    SELECT coalesce(sum(credits), 0)::bigint AS credits FROM payments
    WHERE account_id = ${accountId} AND kind = 'automatic' AND state NOT IN ('failed', 'expired')
      AND greatest(created_at, coalesce(paid_at, created_at)) >= date_trunc('month', now(), 'UTC')`
  return row.credits
}

/**
 * Begins an attempt, claimed by this process, where the balance is still below the threshold, none is under way, and the
 * month's maximum allows it; else returns null. Those who begin at the same time wait here for each other.
 */
export const beginAutomatic = (
  sql: Sql,
  accountId: string,
  computePrice: (credits: Credits) => Price,
): Promise<Payment | null> =>
  inTransaction(sql, async (transaction) => {
    const settings = await lockAutomatic(transaction, accountId)
    // A statement after the lock, so that it sees what was committed while the lock was waited for.
    if (settings === null || (await findLowBalances(transaction, accountId)).length === 0) return null
    const { amount, monthlyMaximum } = settings
    if ((await sumCreditsOfMonth(transaction, accountId)) + amount > monthlyMaximum) {
      await waitForMonth(transaction, settings)
      return null
    }
    const [method] = await listMethods(transaction, accountId)
    if (method === undefined || (await findCustomer(transaction, accountId)) === null) return null
    return createPayment(transaction, {
      accountId,
      kind: 'automatic',
      credits: amount,
      ...computePrice(amount),
      methodId: method.id,
    })
  })

async function waitForMonth(
  sql: Queryable,
  { accountId, amount, monthlyMaximum }: AutomaticTopUp,
): Promise<void> {
  const [row] = await sql<[{ waits_until: Date }]>`
    UPDATE automatic_topups SET waits_until = date_trunc('month', now(), 'UTC') + interval '1 month', waits_for = 'month'
    WHERE account_id = ${accountId} RETURNING waits_until`
  const until = row.waits_until.toISOString()
  await recordEvent(sql, {
    type: 'topup.failed',
    accountId,
    subjectId: accountId,
    crossing: `topup-maximum:${accountId}:${until}`,
    data: {
      reason: 'monthly_maximum',
      credits: printCredits(amount),
      monthly_maximum: printCredits(monthlyMaximum),
      waits_until: until,
    },
  })
}

/** An attempt that asks the provider, or was doing so when its process ended. */
export interface ClaimedAttempt {
  readonly payment: Payment
  readonly customerId: string
  readonly methodId: string
}

/** Returns an attempt that this process has claimed, with what the provider needs. */
export async function readAttempt(sql: Queryable, paymentId: string): Promise<ClaimedAttempt> {
  const [row] = await sql<[PaymentRow & { method_id: string }]>`
    ${selectPayments(sql)} WHERE p.id = ${paymentId}`
  const customerId = (await findCustomer(sql, row.account_id))!
  return { payment: toPayment(row), customerId, methodId: row.method_id }
}

/** Claims attempts whose process is gone, or which the provider did not answer. Returns their ids. */
export async function claimAttempts(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    UPDATE payments SET claimed_until = now() + make_interval(secs => ${CLAIM_SECONDS})
    WHERE id IN (
      SELECT id FROM payments
      WHERE kind = 'automatic' AND state = 'created' AND claimed_until <= now()
      LIMIT ${MAX_FOUND} FOR UPDATE SKIP LOCKED)
    RETURNING id`
  return rows.map(({ id }) => id)
}

/** Counts a failed attempt, as part of its transaction: the next one waits, and after some there is none. */
export async function countFailure(sql: Queryable, accountId: string): Promise<AutomaticTopUp | null> {
  const [row] = await sql<AutomaticRow[]>`
    UPDATE automatic_topups SET failures = failures + 1,
      enabled = enabled AND failures + 1 < ${MAX_FAILURES},
      off_reason = CASE WHEN enabled AND failures + 1 >= ${MAX_FAILURES} THEN 'failures' ELSE off_reason END,
      waits_until = now() + make_interval(hours => ${RETRY_HOURS} * (2 ^ least(failures, 10))::integer),
      waits_for = 'retry'
    WHERE account_id = ${accountId} RETURNING *`
  return row === undefined ? null : toAutomatic(row)
}

/** Switches automatic top-ups off until the customer switches them on again. */
export const switchOff = (sql: Queryable, accountId: string, reason: OffReason) => sql`
  UPDATE automatic_topups SET enabled = false, off_reason = ${reason} WHERE account_id = ${accountId} AND enabled`

/** Forgets earlier failures after a payment. */
export const forgetFailures = (sql: Queryable, accountId: string) => sql`
  UPDATE automatic_topups SET failures = 0, waits_until = NULL, waits_for = NULL
  WHERE account_id = ${accountId} AND (failures > 0 OR waits_until IS NOT NULL)`
