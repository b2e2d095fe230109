/** Refunds and disputes: credits that are taken back, and given back where a refund fails or a dispute is won. */
import {
  type Payment,
  type Price,
  REVERSAL_TRANSITIONS,
  type ReversalState,
} from '../../../schemas/payments/payment.ts'
import type { ReversalNotice, TakenNotice } from '../../../schemas/payments/provider.ts'
import { computeCredits, computeReversal, printPrice } from '../../core/payments/price.ts'
import { credit } from '../billing/wallets.ts'
import type { Queryable } from '../connection.ts'
import { lockAutomatic, switchOff } from './automatic.ts'
import { issueReceipt } from './receipts.ts'
import { type PaymentRow, selectPayments, toPayment } from './rows.ts'

interface ReversalRow {
  state: ReversalState
  credits: bigint
}

/** Takes a report of a refund or a dispute. */
export async function takeReversal(sql: Queryable, reported: ReversalNotice): Promise<TakenNotice> {
  const [row] = await sql<Pick<PaymentRow, 'id' | 'account_id'>[]>`
    SELECT id, account_id FROM payments WHERE intent_id = ${reported.intentId} AND state = 'paid'`
  if (row === undefined) return { outcome: 'payment_unknown', paymentId: null }
  // Before the payment, as where one is booked.
  await lockAutomatic(sql, row.account_id)
  await sql`SELECT FROM payments WHERE id = ${row.id} FOR UPDATE`
  // Read under the lock: another refund may have been booked while it was waited for.
  const [locked] = await sql<[PaymentRow]>`${selectPayments(sql)} WHERE p.id = ${row.id}`
  const payment = toPayment(locked)
  const paymentId = payment.id
  const notice = limitToPayment(reported, payment)
  if (notice.currency !== payment.currency || notice.amount <= 0n || notice.amount > payment.amount) {
    const refusal = `${notice.kind} ${notice.id} is of ${printPrice(notice)} ${notice.currency}, the payment of ${printPrice(payment)} ${payment.currency}`
    return { outcome: 'refused', paymentId, refusal }
  }
  const [known] = await sql<ReversalRow[]>`
    SELECT state, credits FROM payment_reversals WHERE id = ${notice.id} AND payment_id = ${paymentId}`
  const next = REVERSAL_TRANSITIONS[known?.state ?? 'unknown'][notice.event]
  if (next === null) return { outcome: 'unchanged', paymentId }
  if (known !== undefined) await giveBack(sql, payment, notice, known.credits)
  else if (next === 'taken') await take(sql, payment, notice)
  else await insertReversal(sql, payment, notice, 'returned', 0n)
  return { outcome: 'taken', paymentId }
}

/** Returns the part of a dispute that the payment covers: it may be of more, where the rate of exchange has changed. */
const limitToPayment = (notice: ReversalNotice, { amount, currency }: Price): ReversalNotice =>
  notice.kind === 'chargeback' && notice.currency === currency && notice.amount > amount
    ? { ...notice, amount }
    : notice

const insertReversal = (
  sql: Queryable,
  payment: Payment,
  { id, kind, amount }: ReversalNotice,
  state: ReversalState,
  credits: bigint,
) => sql`
  INSERT INTO payment_reversals (id, payment_id, kind, state, amount, credits, created_at, returned_at)
  VALUES (
    ${id}, ${payment.id}, ${kind}, ${state}, ${amount}, ${credits},
    -- Under the lock of the payment, so that the order is that in which the parts were taken.
    clock_timestamp(), CASE WHEN ${state} = 'returned' THEN now() END)`

const NOTES = { refund: 'refund of a card payment', chargeback: 'chargeback of a card payment' } as const
const GIVEN_BACK = { refund: 'refund that failed', chargeback: 'dispute that was won' } as const

/** Takes the part of the credits that goes with the money; all parts together are at most the credits of the payment. */
async function take(sql: Queryable, payment: Payment, notice: ReversalNotice): Promise<void> {
  const { accountId } = payment
  const credits = computeReversal(payment, notice.amount)
  await insertReversal(sql, payment, notice, 'taken', credits)
  // Else the low balance would charge the same card again at once.
  await switchOff(sql, accountId, notice.kind)
  if (credits > 0n)
    await credit(sql, {
      accountId,
      kind: 'reversal',
      amount: -credits,
      reference: notice.id,
      note: `${NOTES[notice.kind]}: ${payment.id}`,
    })
  if (notice.kind === 'refund') await issue(sql, 'credit_note', payment, notice, credits)
}

async function giveBack(
  sql: Queryable,
  payment: Payment,
  notice: ReversalNotice,
  credits: bigint,
): Promise<void> {
  await sql`UPDATE payment_reversals SET state = 'returned', returned_at = now() WHERE id = ${notice.id} AND state = 'taken'`
  if (credits > 0n)
    await credit(sql, {
      accountId: payment.accountId,
      kind: 'reversal',
      amount: credits,
      reference: `${notice.id}:returned`,
      note: `${GIVEN_BACK[notice.kind]}: ${payment.id}`,
    })
  await takeUncovered(sql, payment, notice.id)
  // The credit note stands for money that did not leave.
  if (notice.kind === 'refund') await issue(sql, 'receipt', payment, notice, credits)
}

/**
 * Takes the credits that a returned part had taken in place of later ones: together these were above the payment, and
 * now the money of each is gone by itself.
 */
async function takeUncovered(sql: Queryable, payment: Payment, returnedId: string): Promise<void> {
  const parts = await sql<(Pick<ReversalNotice, 'id' | 'kind' | 'amount'> & { credits: bigint })[]>`
    SELECT id, kind, amount, credits FROM payment_reversals
    WHERE payment_id = ${payment.id} AND state = 'taken' ORDER BY created_at, id`
  let gone = 0n
  for (const { id, kind, amount, credits } of parts) {
    const before = computeCredits(gone, payment)
    gone += amount
    const owed = computeCredits(gone, payment) - before
    if (owed === credits) continue
    await sql`UPDATE payment_reversals SET credits = ${owed} WHERE id = ${id}`
    await credit(sql, {
      accountId: payment.accountId,
      kind: 'reversal',
      amount: credits - owed,
      reference: `${id}:after:${returnedId}`,
      note: `${NOTES[kind]}: ${payment.id}`,
    })
  }
}

const issue = (
  sql: Queryable,
  kind: 'receipt' | 'credit_note',
  { id: paymentId, accountId, currency }: Payment,
  { id: reversalId, amount }: ReversalNotice,
  credits: bigint,
) => issueReceipt(sql, { kind, paymentId, reversalId, accountId, amount, currency, credits })
