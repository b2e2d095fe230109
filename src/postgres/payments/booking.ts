/**
 * Books what the provider reports of payments in rows and wallets. Reports may come twice, late and in any order: each
 * transition is a compare-and-set, its money is in the same transaction, and a reference counts once in the ledger.
 */
import { printCredits } from '../../../schemas/money.ts'
import { PAYMENT_TRANSITIONS, type Payment, type PaymentState } from '../../../schemas/payments/payment.ts'
import type {
  PaymentNotice,
  ProviderEvent,
  ProviderNotice,
  TakenNotice,
} from '../../../schemas/payments/provider.ts'
import { printPrice } from '../../core/payments/price.ts'
import { credit } from '../billing/wallets.ts'
import type { Queryable, Sql } from '../connection.ts'
import { recordEvent } from '../notifications/outbox.ts'
import { inTransaction } from '../transaction.ts'
import { countFailure, forgetFailures, lockAutomatic } from './automatic.ts'
import { takeMethod } from './methods.ts'
import { isCustomer } from './payments.ts'
import { issueReceipt } from './receipts.ts'
import { takeReversal } from './reversals.ts'
import { type PaymentRow, selectPayments, toPayment } from './rows.ts'

/** Takes an event of the provider, once. An event of an unknown payment is not kept: it is to come again. */
export const takeProviderEvent = (sql: Sql, event: ProviderEvent): Promise<TakenNotice> =>
  inTransaction(sql, async (transaction) => {
    const { id, type, createdAt, notice } = event
    if (notice === null) return { outcome: 'unchanged', paymentId: null }
    const inserted = await transaction`
      INSERT INTO payment_events (id, type, created_at) VALUES (${id}, ${type}, ${createdAt})
      ON CONFLICT (id) DO NOTHING RETURNING id`
    if (inserted.count === 0) return { outcome: 'seen', paymentId: null }
    const taken = await takeNotice(transaction, notice)
    if (taken.outcome === 'payment_unknown') {
      await transaction`DELETE FROM payment_events WHERE id = ${id}`
      return taken
    }
    const refusal = taken.outcome === 'refused' ? taken.refusal : null
    await transaction`
      UPDATE payment_events SET payment_id = ${taken.paymentId}, refusal = ${refusal} WHERE id = ${id}`
    return taken
  })

/** Takes what the provider reports, in an event or in an answer. */
export const takeNotice = (sql: Queryable, notice: ProviderNotice): Promise<TakenNotice> =>
  inTransaction(sql, async (transaction) => {
    if (notice.about === 'payment') return takePayment(transaction, notice)
    if (notice.about === 'reversal') return takeReversal(transaction, notice)
    const isOurs = await takeMethod(transaction, notice)
    return { outcome: isOurs ? 'taken' : 'unchanged', paymentId: null }
  })

async function takePayment(sql: Queryable, notice: PaymentNotice): Promise<TakenNotice> {
  const { paymentId, event } = notice
  const toRefused = (refusal: string): TakenNotice => ({ outcome: 'refused', paymentId, refusal })
  const [found] = await sql<PaymentRow[]>`${selectPayments(sql)} WHERE p.id = ${paymentId}`
  if (found === undefined) return toRefused('there is no such payment')
  // Before the payment, as where an attempt begins.
  if (found.kind === 'automatic') await lockAutomatic(sql, found.account_id)
  const [row] = await sql<[PaymentRow]>`${selectPayments(sql)} WHERE p.id = ${paymentId} FOR UPDATE OF p`
  const payment = toPayment(row)
  const contradiction = await findContradiction(sql, payment, notice)
  if (contradiction !== null) return toRefused(contradiction)
  const next = PAYMENT_TRANSITIONS[payment.state][event]
  if (next === null) return { outcome: 'unchanged', paymentId }
  await move(sql, payment, next, notice)
  await settle(sql, payment, next, notice)
  return { outcome: 'taken', paymentId }
}

/** Returns where the provider's report contradicts our row, which was there before it; null where it does not. */
async function findContradiction(
  sql: Queryable,
  payment: Payment,
  notice: PaymentNotice,
): Promise<string | null> {
  const { customerId, event, intentId } = notice
  if (customerId !== null && !(await isCustomer(sql, payment.accountId, customerId)))
    return `the customer ${customerId} is not that of ${payment.accountId}`
  if (event !== 'paid') return null
  if (notice.amount !== payment.amount || notice.currency !== payment.currency)
    return `${printPrice(notice)} ${notice.currency} was paid, not ${printPrice(payment)} ${payment.currency}`
  if (intentId === null) return 'the paid payment has no intent'
  if (payment.state === 'paid' && payment.intentId !== intentId)
    return `it was paid by ${payment.intentId} already, and again by ${intentId}`
  return null
}

async function move(
  sql: Queryable,
  payment: Payment,
  next: PaymentState,
  notice: PaymentNotice,
): Promise<void> {
  const { sessionId, intentId, url = null, failureCode = null, failureMessage = null } = notice
  const { count } = await sql`
    UPDATE payments SET state = ${next}, session_id = coalesce(${sessionId}, session_id),
      intent_id = coalesce(${intentId}, intent_id), url = coalesce(${url}, url),
      failure_code = ${failureCode}, failure_message = ${failureMessage},
      paid_at = CASE WHEN ${next} = 'paid' THEN now() END
    WHERE id = ${payment.id} AND state = ${payment.state}`
  if (count !== 1) throw new Error(`The payment ${payment.id} is not ${payment.state} any more`)
}

/** Books the money of a transition, and what belongs to it. */
async function settle(
  sql: Queryable,
  payment: Payment,
  next: PaymentState,
  notice: PaymentNotice,
): Promise<void> {
  const { id, accountId, kind, credits, amount, currency } = payment
  const isAutomatic = kind === 'automatic'
  const data = {
    payment_id: id,
    kind,
    credits: printCredits(credits),
    amount: printPrice(payment),
    currency,
  }
  const about = { accountId, subjectId: id, crossing: `topup:${id}:${next}` }
  if (next === 'paid') {
    const paid = {
      accountId,
      kind: 'topup',
      amount: credits,
      reference: id,
      note: printNote(payment),
    } as const
    const { wallet } = await credit(sql, paid)
    await issueReceipt(sql, {
      kind: 'receipt',
      paymentId: id,
      reversalId: null,
      accountId,
      credits,
      amount,
      currency,
    })
    if (isAutomatic) await forgetFailures(sql, accountId)
    const balance = printCredits(wallet.balance)
    await recordEvent(sql, { ...about, type: 'topup.succeeded', data: { ...data, balance } })
    return
  }
  if (next === 'confirming') {
    const more = { reason: 'confirmation_required', confirm_url: notice.url ?? null }
    await recordEvent(sql, { ...about, type: 'topup.failed', data: { ...data, ...more } })
    return
  }
  // A customer who left the page of the provider knows.
  const isFailure = next === 'failed' || (next === 'expired' && isAutomatic)
  if (!isFailure) return
  const settings = isAutomatic ? await countFailure(sql, accountId) : null
  const more = {
    reason: next,
    failure_code: notice.failureCode ?? null,
    failure_message: notice.failureMessage ?? null,
    ...(settings && { failures: settings.failures, automatic_topup_off: settings.offReason === 'failures' }),
  }
  await recordEvent(sql, { ...about, type: 'topup.failed', data: { ...data, ...more } })
}

const printNote = (payment: Payment): string =>
  `card payment of ${printPrice(payment)} ${payment.currency.toUpperCase()}`
