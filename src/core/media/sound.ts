/** Sound of videos: whether a video is made with it, and the prices that hold then. Pure. */
import type { ModelEntry, Pricing, PricingFields } from '../../../schemas/config/catalog.ts'
import { pricesInOrder } from '../pricing/changes.ts'

/** Returns true where a video is made with sound: as its request says, else as its model does. */
export const makesSound = (
  { videos }: Pick<ModelEntry, 'videos'>,
  asked: boolean | null | undefined,
): boolean => asked ?? videos?.default_audio ?? false

/** Returns true where videos with and without sound have separate prices, now or by a planned change. */
export const isPricedBySound = (pricing: Pricing | undefined): boolean =>
  pricing !== undefined && pricesInOrder(pricing).some(({ fields }) => fields.with_audio !== undefined)

/** Returns the prices of videos with sound, or of those without. */
export function choosePricesBySound<Prices extends PricingFields>(prices: Prices, sound: boolean): Prices {
  const { with_audio } = prices
  if (!sound || with_audio === undefined) return prices
  const { per_unit, variants } = with_audio
  return { ...prices, per_unit, variants }
}
