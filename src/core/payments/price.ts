/** Prices of credits. */
import { type Credits, printScaled } from '../../../schemas/money.ts'
import type { Price } from '../../../schemas/payments/payment.ts'

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
