/** Prices are rounded up to what the payment provider takes, and printed in units of their currency. */
import t from 'tap'
import { parseCredits } from '../../../schemas/money.ts'
import { priceOf, printPrice } from '../../../src/core/payments/price.ts'

const PRICES = [
  // currency, credits for one unit, what the provider is to be sent, how it is printed
  ['usd', '100', 405n, '4.05'],
  ['jpy', '1', 405n, '405'],
  // The last of three decimals is 0.
  ['kwd', '100', 4050n, '4.050'],
  // In hundredths, of which the provider takes whole units alone.
  ['isk', '1', 40_500n, '405.00'],
  ['ugx', '1', 40_500n, '405.00'],
  ['huf', '1', 40_440n, '404.40'],
] as const

for (const [currency, perUnit, amount, printed] of PRICES)
  t.test(`404.4 credits in ${currency}`, async (t) => {
    const price = priceOf(parseCredits('404.4'), { currency, credits_per_unit: parseCredits(perUnit) })
    t.same(price, { currency, amount })
    t.equal(printPrice(price), printed)
  })
