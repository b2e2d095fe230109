/** Prices of credits by card, in the configuration file. See docs/payments.md, "Prices". */
import { z } from 'zod'
import { MINIMUM_TOP_UP } from '../accounts/account.ts'
import { creditsText, parseCredits } from '../money.ts'

const MAX_PRESETS = 6
const MAX_SELLER_LINES = 8
const MAX_LINE_CHARS = 80

const topUp = creditsText.refine(
  (credits) => credits >= parseCredits(MINIMUM_TOP_UP),
  `is at least ${MINIMUM_TOP_UP}, the least top-up`,
)

export const paymentsEntry = z.strictObject({
  currency: z.string().regex(/^[a-z]{3}$/, 'is the three letters of a currency in lower case, such as usd'),
  /** Credits that one unit of the currency buys. */
  credits_per_unit: creditsText.refine((credits) => credits > 0n, 'is more than 0'),
  /** Amounts of credits that the console offers. */
  presets: z.array(topUp).max(MAX_PRESETS).default([]),
  /** Name and address at the top of receipts, line by line. */
  seller: z.array(z.string().min(1).max(MAX_LINE_CHARS)).max(MAX_SELLER_LINES).default([]),
})
