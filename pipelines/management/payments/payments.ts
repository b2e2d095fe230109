/** Operations of payments by card, and of the events that contradict them. */
import { createHash, randomUUID } from 'node:crypto'
import { MINIMUM_TOP_UP } from '../../../schemas/accounts/account.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/payments/payments.ts'
import { closeRefusedEvent, listRefusedEvents } from '../../../schemas/management/payments/refused-events.ts'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { OPEN_STATES, type Payment, type Receipt } from '../../../schemas/payments/payment.ts'
import { DAY_MS } from '../../../src/core/call-log/window.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import { computePrice, countDecimals, parsePrice, printPrice } from '../../../src/core/payments/price.ts'
import { writeReceiptPage } from '../../../src/core/payments/receipt-page.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { PaymentsQuery } from '../../../src/postgres/payments/payments.ts'
import type { RefusedEvent } from '../../../src/postgres/payments/refused-events.ts'
import { returnPages } from '../../payments/pages.ts'
import { reconcile } from '../../payments/reconcile.ts'
import { takeReport } from '../../payments/take-event.ts'
import { type Context, implementWith } from '../operation.ts'
import { type PageInput, readCursor, readRange, toPage } from '../page.ts'
import { consoleBase, findOrCreateCustomer, openCards, type PaymentServices } from './cards.ts'

const implement = implementWith<PaymentServices>()

const refusedEventShape = toApiShape<RefusedEvent>

const receiptShape = (receipt: Receipt) => ({
  ...toApiShape(receipt),
  number: Number(receipt.number),
  amount: printPrice(receipt),
  credits: printCredits(receipt.credits),
})

const paymentShape = (payment: Payment, receipts: readonly Receipt[]) => {
  const { currency } = payment
  const isOpen = OPEN_STATES.some((state) => state === payment.state)
  return {
    ...toApiShape(payment),
    credits: printCredits(payment.credits),
    amount: printPrice(payment),
    refunded: printPrice({ amount: payment.refunded, currency }),
    disputed: printPrice({ amount: payment.disputed, currency }),
    credits_taken: printCredits(payment.creditsTaken),
    url: isOpen ? payment.url : null,
    receipts: receipts.filter(({ paymentId }) => paymentId === payment.id).map(receiptShape),
  }
}

async function showWithReceipts(database: Database, id: string) {
  return paymentShape(await database.payments.show(id), await database.payments.listReceipts([id]))
}

async function listPage(
  { database }: Context,
  query: Omit<PaymentsQuery, 'before' | 'limit'>,
  input: PageInput,
) {
  const payments = await database.payments.list({
    ...query,
    before: readCursor(input),
    limit: input.limit + 1,
  })
  const receipts = await database.payments.listReceipts(payments.map(({ id }) => id))
  const shown = payments.map((payment) => paymentShape(payment, receipts))
  return toPage(shown, input)
}

/** @throws Failure `invalid_request` under the least top-up */
export function assertEnough(credits: Credits, field: string): void {
  if (credits < parseCredits(MINIMUM_TOP_UP))
    throw new Failure(
      'invalid_request',
      `${field}: a top-up is at least ${MINIMUM_TOP_UP} credits, not ${printCredits(credits)}.`,
    )
}

/** @throws Failure `invalid_request` for more decimals than the currency has */
function toMinorUnits(amount: string | null, currency: string): bigint | null {
  const units = amount === null ? null : parsePrice(amount, currency)
  if (amount !== null && units === null)
    throw new Failure('invalid_request', `amount: ${currency} has ${countDecimals(currency)} decimal places.`)
  return units
}

export const paymentOperations = [
  implement(operations.showOffer, async (_, __, { config, openProvider, hasSimulatedCards }) => {
    const rates = openProvider === null ? null : config().payments
    return {
      takes_cards: rates !== null,
      is_simulated: hasSimulatedCards,
      currency: rates?.currency ?? null,
      credits_per_unit: rates === null ? null : printCredits(rates.credits_per_unit),
      minimum: MINIMUM_TOP_UP,
      presets:
        rates?.presets.map((credits) => ({
          credits: printCredits(credits),
          amount: printPrice(computePrice(credits, rates)),
        })) ?? [],
    }
  }),
  implement(
    operations.startPayment,
    async (context, { account_id: accountId, credits, save_card: savesMethod }, services) => {
      assertEnough(credits, 'credits')
      const { database, write, idempotency: keyed, caller } = context
      const { provider, rates } = await openCards(services)
      const requestHash = createHash('sha256').update(`${accountId} ${credits}`).digest()
      const idempotency = keyed && { ...keyed, scope: `payments:${caller.actor}` as const, requestHash }
      const customerId = await findOrCreateCustomer(context, provider, accountId)
      // Our row comes first: what the provider reports later is compared with it.
      const wanted = {
        accountId,
        kind: 'checkout',
        credits,
        ...computePrice(credits, rates),
        savesMethod,
      } as const
      const payment = await write((writing) => writing.payments.create({ ...wanted, idempotency }))
      if (payment.state === 'created') {
        const pages = { ...returnPages(consoleBase(context, services), payment), savesMethod }
        await takeReport(
          { database, provider, log: services.log },
          await provider.openCheckout(payment, customerId, pages),
        )
      }
      return showWithReceipts(database, payment.id)
    },
  ),
  implement(operations.listPayments, (context, { account_id: accountId, ...input }) =>
    listPage(context, { accountId }, input),
  ),
  implement(
    operations.listAllPayments,
    async (context, { search = null, account_id: accountId = null, state = null, ...input }) => {
      const page = await listPage(context, { accountId, search, state, ...readRange(input) }, input)
      const names = await context.database.accounts.readNames(page.data.map(({ account_id }) => account_id))
      const data = page.data.map((one) => ({ ...one, account_name: names.get(one.account_id) ?? '' }))
      return { ...page, data }
    },
  ),
  implement(
    operations.showPayment,
    async (database, { id }) => (await database.payments.show(id)).accountId,
    ({ database }, { id }) => showWithReceipts(database, id),
  ),
  implement(
    operations.refundPayment,
    async ({ database, write, idempotency }, { id, amount, reason }, services) => {
      const { provider } = await openCards(services)
      const payment = await database.payments.show(id)
      if (payment.state !== 'paid' || payment.intentId === null)
        throw new Failure(
          'conflict',
          `The payment ${id} is ${payment.state}: only a paid one can be refunded.`,
        )
      const units = toMinorUnits(amount, payment.currency)
      await write((writing) => writing.payments.recordRefundRequest(payment, { amount, reason }))
      const once = createHash('sha256')
        .update(idempotency?.key ?? randomUUID())
        .digest('hex')
      const refund = await provider.refund(payment.intentId, units, {
        paymentId: id,
        key: `refund-${id}-${once}`,
      })
      await takeReport({ database, provider, log: services.log }, refund)
      return showWithReceipts(database, id)
    },
  ),
  implement(operations.reconcilePayments, async ({ database, now }, { days }, services) => {
    const { provider } = await openCards(services)
    const since = days === undefined ? undefined : new Date(now - days * DAY_MS)
    const { since: from, ...counts } = await reconcile({ database, provider, log: services.log }, since)
    return { since: from.toISOString(), ...counts }
  }),
  implement(
    operations.openReceipt,
    async (database, { number }) => (await database.payments.showReceipt(BigInt(number))).accountId,
    async ({ database }, { number }, { config }) =>
      writeReceiptPage(await database.payments.showReceipt(BigInt(number)), config().payments?.seller ?? []),
  ),
  implement(listRefusedEvents, async ({ database }, { state, ...input }) => {
    const query = { isOpen: state === 'open', before: readCursor(input), limit: input.limit + 1 }
    return toPage((await database.payments.listRefusedEvents(query)).map(refusedEventShape), input)
  }),
  implement(closeRefusedEvent, async ({ write }, input) =>
    refusedEventShape(await write((writing) => writing.payments.closeRefusedEvent(input))),
  ),
]
