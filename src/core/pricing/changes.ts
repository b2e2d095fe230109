/** Planned price changes. See docs/pricing.md, "Planned changes". */
import type { ModelEntry, Pricing, PricingFields } from '../../../schemas/config/catalog.ts'

/** Prices, and the instant from which they hold: an RFC 3339 text, or null for those from the beginning. */
interface PricesFrom {
  readonly from: string | null
  readonly fields: PricingFields
}

/** Returns all prices in the order in which they hold. */
export const pricesInOrder = (pricing: Pricing): PricesFrom[] => [
  { from: null, fields: pricing },
  ...pricing.changes
    .map((change) => ({ from: change.from, fields: change }))
    .sort((a, b) => Date.parse(a.from) - Date.parse(b.from)),
]

/** Returns the prices that hold at the instant `now` (epoch milliseconds). */
export function pricingAt(pricing: Pricing, now: number): PricingFields {
  if (pricing.changes.length === 0) return pricing
  return pricesInOrder(pricing).findLast(({ from }) => from === null || now >= Date.parse(from))!.fields
}

/** Returns the model as it is at the instant `now`: with the price and the discount that hold then, and no other. */
export function modelAt<M extends { readonly entry: ModelEntry }>(model: M, now: number): M {
  const { pricing } = model.entry
  if (pricing === undefined) return model
  const { discount, discount_until: until, ...prices } = pricingAt(pricing, now)
  const isDiscounted = discount !== undefined && (until === undefined || now < Date.parse(until))
  const holding = { ...prices, ...(isDiscounted && { discount }), unit: pricing.unit, changes: [] }
  return { ...model, entry: { ...model.entry, pricing: holding } }
}
