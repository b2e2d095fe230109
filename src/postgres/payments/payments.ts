/** Payments: their rows, before the provider knows of them and after. */
import type { Credits } from '../../../schemas/money.ts'
import type { Payment, PaymentKind, PaymentState, Price } from '../../../schemas/payments/payment.ts'
import { newId } from '../../core/keys/ids.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable } from '../connection.ts'
import { bindSubject, type IdempotencyClaim } from '../requests/idempotency.ts'
import { inRange, type TimeRange } from '../time-range.ts'
import { inTransaction, type Transaction } from '../transaction.ts'
import { type PaymentRow, selectPayments, toPayment } from './rows.ts'

/** A process that asks the provider has this long before another one asks again. */
const CLAIM_SECONDS = 30

export interface NewPayment extends Price {
  readonly accountId: string
  readonly kind: PaymentKind
  readonly credits: Credits
  readonly savesMethod?: boolean
  readonly methodId?: string
  /** The same key starts one payment. */
  readonly idempotency?: IdempotencyClaim | null
}

/**
 * Writes the row of a payment, claimed by this process; returns the earlier one where the key was used.
 * @throws Refusal `idempotency_key_reuse`, `limit_reached`
 */
export const createPayment = (sql: Queryable, wanted: NewPayment): Promise<Payment> =>
  inTransaction(sql, async (transaction) => {
    const { idempotency = null } = wanted
    const id = newId('pay')
    const bound = idempotency && (await bindSubject(transaction, idempotency, id, { isForEver: true }))
    if (bound === null) return insertPayment(transaction, id, wanted)
    if (!bound.requestHash.equals(idempotency!.requestHash))
      throw new Refusal('idempotency_key_reuse', 'This Idempotency-Key started another payment')
    return showPayment(transaction, bound.subject)
  })

const insertPayment = (sql: Transaction, id: string, wanted: NewPayment): Promise<Payment> => {
  const { accountId, kind, credits, amount, currency, savesMethod = false, methodId = null } = wanted
  const entries = (transaction: Transaction) => transaction`
    SELECT FROM payments WHERE account_id = ${accountId} AND state IN ('created', 'open', 'confirming')`
  return addWithin(sql, { limit: 'open_payments_per_account', ownerId: accountId, entries }, async () => {
    await sql`
      INSERT INTO payments (
        id, account_id, kind, credits, amount, currency, saves_method, method_id, created_by, claimed_until)
      VALUES (
        ${id}, ${accountId}, ${kind}, ${credits}, ${amount}, ${currency}, ${savesMethod}, ${methodId}, audit_actor(),
        now() + make_interval(secs => ${CLAIM_SECONDS}))`
    return showPayment(sql, id)
  })
}

/** @throws Refusal `payment_not_found` */
export async function showPayment(sql: Queryable, id: string): Promise<Payment> {
  const [row] = await sql<PaymentRow[]>`${selectPayments(sql)} WHERE p.id = ${id}`
  if (row === undefined) throw new Refusal('payment_not_found', `There is no payment ${id}`)
  return toPayment(row)
}

export interface PaymentsQuery extends TimeRange {
  /** Null: of all accounts. */
  readonly accountId: string | null
  /** Part of an id, or of the account's name. Default: every payment. */
  readonly search?: string | null
  readonly state?: PaymentState | null
  /** The id before which the list begins; null: at the newest. */
  readonly before: string | null
  readonly limit: number
}

/** Lists payments, the newest first. */
export async function listPayments(
  sql: Queryable,
  { accountId, search = null, state = null, before, limit, ...range }: PaymentsQuery,
): Promise<Payment[]> {
  const rows = await sql<PaymentRow[]>`
    ${selectPayments(sql)}
    WHERE true
      ${accountId === null ? sql`` : sql`AND p.account_id = ${accountId}`}
      ${search === null ? sql`` : sql`AND position(lower(${search}) IN lower(concat_ws(' ', p.id, p.intent_id, p.account_id, (SELECT name FROM accounts WHERE id = p.account_id)))) > 0`}
      ${state === null ? sql`` : sql`AND p.state = ${state}`}
      ${inRange(sql, 'p.created_at', range)}
      ${before === null ? sql`` : sql`AND p.id < ${before}`}
    ORDER BY p.id DESC LIMIT ${limit}`
  return rows.map(toPayment)
}

/** Lists open payments that are older than this, to be compared with the provider's books. */
export async function listOpenPayments(sql: Queryable, olderThanSeconds: number): Promise<Payment[]> {
  const rows = await sql<PaymentRow[]>`
    ${selectPayments(sql)}
    WHERE p.state IN ('created', 'open', 'confirming')
      AND p.created_at < now() - make_interval(secs => ${olderThanSeconds})
    ORDER BY p.created_at LIMIT 1000`
  return rows.map(toPayment)
}

/** Records that a refund is asked for, before the provider is. */
export const recordRefundRequest = (
  sql: Queryable,
  { id, accountId }: Pick<Payment, 'id' | 'accountId'>,
  asked: { readonly amount: string | null; readonly reason: string },
): Promise<void> => recordOperation(sql, { action: 'payment.refund', accountId, subjectId: id, after: asked })

/** Returns the provider's id of an account; null before it has one. */
export async function findCustomer(sql: Queryable, accountId: string): Promise<string | null> {
  const [row] = await sql<{ id: string }[]>`
    SELECT id FROM payment_customers WHERE account_id = ${accountId} ORDER BY created_at DESC, id LIMIT 1`
  return row?.id ?? null
}

/** Returns whether the account has, or had, this id at the provider. */
export async function isCustomer(sql: Queryable, accountId: string, id: string): Promise<boolean> {
  const rows = await sql`SELECT FROM payment_customers WHERE account_id = ${accountId} AND id = ${id}`
  return rows.length > 0
}

/** Keeps the provider's id of an account: from now on the current one. */
export async function keepCustomer(sql: Queryable, accountId: string, id: string): Promise<void> {
  await sql`INSERT INTO payment_customers (account_id, id) VALUES (${accountId}, ${id}) ON CONFLICT DO NOTHING`
}

/** Returns up to when the provider's list of events was compared; null before the first time. */
export async function readReconciled(sql: Queryable): Promise<Date | null> {
  const [row] = await sql<{ until: Date }[]>`SELECT until FROM payment_reconciliation`
  return row?.until ?? null
}

export async function keepReconciled(sql: Queryable, until: Date): Promise<void> {
  await sql`
    INSERT INTO payment_reconciliation AS kept (until) VALUES (${until})
    ON CONFLICT (only_row) DO UPDATE SET until = greatest(kept.until, excluded.until)`
}
