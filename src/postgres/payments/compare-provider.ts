/** Compares our payments with the provider's books. */
import { printCredits } from '../../../schemas/money.ts'
import type { Price } from '../../../schemas/payments/payment.ts'
import { printPrice } from '../../core/payments/price.ts'
import type { AuditedPayments, Difference, DifferenceKind } from '../billing/audit-report.ts'
import type { Queryable } from '../connection.ts'
import { type PaymentRow, selectPayments } from './rows.ts'

/** The provider's list is long; older payments were compared when they were young. */
const COMPARED_DAYS = 90

/**
 * Returns where the provider's paid payments of the last 90 days and ours differ.
 * @throws Failure `service_unavailable` while the provider is down
 */
export async function comparePayments(sql: Queryable, provider: AuditedPayments): Promise<Difference[]> {
  const [{ since, now }] = await sql<[{ since: Date; now: Date }]>`
    SELECT now() - make_interval(days => ${COMPARED_DAYS}) AS since, now() AS now`
  const theirs = await provider.listPaid(since)
  // Theirs first: a payment that is booked meanwhile is one that they have.
  const ours = await sql<PaymentRow[]>`
    ${selectPayments(sql)} WHERE p.created_at >= ${since} OR p.id = ANY (${theirs.map(({ paymentId }) => paymentId)}::text[])`
  const rows = new Map(ours.map((row) => [row.id, row]))
  const reported = new Set(theirs.map(({ intentId }) => intentId))
  const differences: Difference[] = []
  const differ = (
    kind: DifferenceKind,
    row: PaymentRow | undefined,
    ref: string,
    expected: string,
    found: string,
  ) => differences.push({ account_id: row?.account_id ?? '', kind, ref, expected, found })
  for (const { paymentId, intentId, refunded, disputed, ...price } of theirs) {
    const row = rows.get(paymentId)
    const isOurs = row?.state === 'paid' && row.intent_id === intentId
    // A payment that was refused, and whose money was given back: nothing is missing here.
    if (!isOurs && refunded + disputed >= price.amount) continue
    const found = isOurs ? printMoney(row) : '0'
    if (found !== printMoney(price)) differ('provider_payment', row, paymentId, printMoney(price), found)
    if (!isOurs) continue
    const theirReversals = refunded + disputed
    const ourReversals = row.refunded + row.disputed
    if (theirReversals !== ourReversals)
      differ('provider_reversal', row, paymentId, ...printBoth(price.currency, theirReversals, ourReversals))
  }
  for (const row of ours)
    if (
      row.state === 'paid' &&
      row.paid_at! < now &&
      row.created_at >= since &&
      !reported.has(row.intent_id!)
    )
      differ(
        'provider_payment',
        row,
        row.id,
        '0',
        `${printMoney(row)} (${printCredits(row.credits)} credits)`,
      )
  return differences
}

const printMoney = (price: Price): string => `${printPrice(price)} ${price.currency}`

const printBoth = (currency: string, one: bigint, other: bigint): [string, string] => [
  printMoney({ amount: one, currency }),
  printMoney({ amount: other, currency }),
]
