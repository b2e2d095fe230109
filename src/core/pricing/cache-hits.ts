/**
 * Prices what is read from a cache at a tenth of the input in families with cache writes, where a model has no price for it.
 * See docs/pricing.md, "Cache hits".
 */
import type { ChannelEntry, ModelEntry, Pricing, PricingFields } from '../../../schemas/config/catalog.ts'
import { cacheHitRate, pricesCacheWrites } from './terms.ts'

/** The protocol whose caches are written for a price. */
const WRITING_PROTOCOL = 'messages'

type Priced = Pick<ModelEntry, 'id' | 'aliases' | 'family' | 'pricing'>

/** Returns a test for models whose family has cache writes: by their prices, their channels, or those of their family. */
export function listCacheWritingModels(
  models: readonly Priced[],
  channels: readonly Pick<ChannelEntry, 'protocol' | 'models'>[],
): (model: Priced) => boolean {
  const served = new Set(
    channels
      .filter(({ protocol }) => protocol === WRITING_PROTOCOL)
      .flatMap((channel) => Object.keys(channel.models)),
  )
  const writes = ({ id, aliases, pricing }: Priced): boolean =>
    [id, ...aliases].some((name) => served.has(name)) ||
    (pricing !== undefined && listPrices(pricing).some(pricesCacheWrites))
  const families = new Set(models.filter(writes).map(({ family }) => family))
  return (model) => writes(model) || (model.family !== undefined && families.has(model.family))
}

type TokenPrices = Pick<PricingFields, 'input' | 'cached_input' | 'cache_write' | 'cache_write_1h'>

/** Returns every set of prices of a model: those of tiers and of planned changes too. */
const listPrices = (pricing: Pricing): readonly TokenPrices[] =>
  [pricing, ...pricing.changes].flatMap((prices) => [prices, ...prices.tiers])

/** Returns whether a model that is priced by tokens has no price for cache hits. */
export const lacksCacheHitPrice = ({ unit, input, cached_input }: Pricing): boolean =>
  unit === '1M_tokens' && input !== undefined && cached_input === undefined

const fillCachePrice = <Prices extends TokenPrices>(prices: Prices): Prices =>
  prices.input === undefined || prices.cached_input !== undefined
    ? prices
    : { ...prices, cached_input: cacheHitRate(prices.input) }

const fillAllPrices = <Prices extends PricingFields>(prices: Prices): Prices => ({
  ...fillCachePrice(prices),
  tiers: prices.tiers.map(fillCachePrice),
})

/** Returns the prices with those of cache hits. */
export const withCacheHits = (pricing: Pricing): Pricing =>
  pricing.unit !== '1M_tokens'
    ? pricing
    : { ...fillAllPrices(pricing), changes: pricing.changes.map(fillAllPrices) }
