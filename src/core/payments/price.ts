/** Prices of credits. */
import { type Credits, parseCredits, printScaled } from '../../../schemas/money.ts'
import type { Payment, Price } from '../../../schemas/payments/payment.ts'

/** Currencies whose smallest unit is the unit itself, as the provider counts them. */
const WITHOUT_DECIMALS = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const WITH_THREE_DECIMALS = new Set('bhd jod kwd omr tnd'.split(' '))
/** Units that no longer have parts: the provider still counts them in hundredths, and takes only whole ones. */
const WHOLE_IN_HUNDREDTHS = new Set(['isk', 'ugx'])

/** Returns the number of decimals of a currency, as the provider counts. */
export function countDecimals(currency: string): number {
  if (WITHOUT_DECIMALS.has(currency)) return 0
  return WITH_THREE_DECIMALS.has(currency) ? 3 : 2
}

interface Rates {
  readonly currency: string
  /** Credits that one unit of the currency buys. */
  readonly credits_per_unit: Credits
}

/** Returns the price of credits, rounded up to the smallest unit that the provider takes. */
export function computePrice(credits: Credits, { currency, credits_per_unit }: Rates): Price {
  const decimals = countDecimals(currency)
  const inUnits = (credits * 10n ** BigInt(decimals) + credits_per_unit - 1n) / credits_per_unit
  // The provider takes the last of three decimals only as 0.
  const step = decimals === 3 ? 10n : WHOLE_IN_HUNDREDTHS.has(currency) ? 100n : 1n
  return { currency, amount: ((inUnits + step - 1n) / step) * step }
}

/** Returns the part of the credits that goes with a part of the money, rounded half up; never more than all of them. */
export function computeCredits(
  part: bigint,
  whole: { readonly amount: bigint; readonly credits: Credits },
): Credits {
  if (part >= whole.amount) return whole.credits
  return (2n * whole.credits * part + whole.amount) / (2n * whole.amount)
}

/** Prints an amount in units of its currency: 500 of usd as "5.00". */
export function printPrice({ amount, currency }: Price): string {
  const decimals = countDecimals(currency)
  const [whole = '', fraction = ''] = printScaled(amount, decimals).split('.')
  return decimals === 0 ? whole : `${whole}.${fraction.padEnd(decimals, '0')}`
}

/** Returns the amount of a text such as "5.00" in the smallest unit; null for more decimals than the currency has. */
export function parsePrice(text: string, currency: string): bigint | null {
  const decimals = countDecimals(currency)
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return whole === undefined || fraction.length > decimals
    ? null
    : BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** A payment as the management API shows it. */
type ShownPayment = Readonly<
  Record<'currency' | 'amount' | 'refunded' | 'disputed' | 'credits' | 'credits_taken', string>
>

type Reversible = Pick<Payment, 'amount' | 'refunded' | 'disputed' | 'credits' | 'creditsTaken'>

/** Reads a payment that the management API shows. */
export function readShownPayment({ currency, credits, credits_taken, ...shown }: ShownPayment): Reversible {
  const read = (text: string) => parsePrice(text, currency) ?? 0n
  return {
    amount: read(shown.amount),
    refunded: read(shown.refunded),
    disputed: read(shown.disputed),
    credits: parseCredits(credits),
    creditsTaken: parseCredits(credits_taken),
  }
}

/** Returns how much of a payment can still be refunded, in the smallest unit. */
export const countRefundable = ({ amount, refunded, disputed }: Reversible): bigint =>
  amount - refunded - disputed

/** Returns the credits that a refund or a dispute of this part takes. All together take at most those of the payment. */
export function computeReversal(payment: Reversible, part: bigint): Credits {
  const owed = computeCredits(payment.refunded + payment.disputed + part, payment) - payment.creditsTaken
  return owed > 0n ? owed : 0n
}
