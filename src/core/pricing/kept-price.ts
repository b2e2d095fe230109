/** A price by tokens in the form in which a task keeps it: neither a changed configuration nor a removed model changes it. */
import { type ModelEntry, type Pricing, pricing as pricingSchema } from '../../../schemas/config/catalog.ts'
import { printCredits, printRate } from '../../../schemas/money.ts'
import type { KeptTokenPrice } from '../../../schemas/tasks/response.ts'
import { type TokenPrice, tokenPrice } from './pricing.ts'

/** The only amount among the rates of a price. */
const AMOUNT = 'minimum'

const printPricing = (pricing: Pricing): KeptTokenPrice['pricing'] =>
  JSON.parse(
    JSON.stringify(pricing, (name, value) => {
      if (typeof value !== 'bigint') return value
      return name === AMOUNT ? printCredits(value) : printRate(value)
    }),
  )

/** Returns the price of the model in its kept form. @param pricing the model's, or what its channel costs */
export const toKeptPrice = (
  { context_window, max_output_tokens, estimate }: KeptTokenPrice['model'] | ModelEntry,
  pricing: Pricing,
): KeptTokenPrice => ({
  unit: '1M_tokens',
  pricing: printPricing(pricing),
  model: { context_window, max_output_tokens, estimate },
})

/** @throws Error for a price that is none by tokens */
export function toTokenPrice(kept: KeptTokenPrice): TokenPrice {
  const price = tokenPrice(pricingSchema.parse(kept.pricing))
  if (price === null) throw new Error('the kept price is none by tokens')
  return price
}
