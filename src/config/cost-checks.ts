/** Checks what channels cost the operator, against the models that they serve. See docs/pricing.md, "Cost and margin". */
import type { Pricing } from '../../schemas/config/catalog.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import { choosePricesBySound } from '../core/media/sound.ts'
import { suggest } from '../core/suggest.ts'
import type { SoundChannel } from './channel-checks.ts'
import { checkPricing, type Finding, type SoundModel } from './model-checks.ts'

/** Returns the mistakes: costs of models that the channel does not serve, and prices that cannot be. */
export const checkCosts = (channels: readonly SoundChannel[], models: readonly SoundModel[]): Finding[] =>
  channels.flatMap(({ cost = {}, models: served = {} }, index) =>
    Object.entries(cost).flatMap(([id, pricing]): Finding[] => {
      const path = ['channels', index, 'cost', id]
      if (!Object.hasOwn(served, id)) {
        const message = `The channel does not serve a model "${id}".${suggest(id, Object.keys(served))}`
        return [{ path, message, atKey: true }]
      }
      const model = models.find((entry) => entry.id === id)
      if (model === undefined || pricing === undefined) return []
      return checkPricing(model, pricing).map(([at, message]) => ({ path: [...path, ...at], message }))
    }),
  )

const printMissing = (names: object = {}, known: object = {}): string =>
  Object.keys(names)
    .filter((name) => !Object.hasOwn(known, name))
    .join(', ')

/** Returns what the cost of a model lacks of its price. */
function findGaps(own: Pricing, price: Pricing): string[] {
  const isBySound = price.with_audio !== undefined || own.with_audio !== undefined
  const variants = (isBySound ? [false, true] : [false]).flatMap((sound) => {
    const paid = choosePricesBySound(own, sound)
    const names =
      paid.per_unit === undefined
        ? printMissing(choosePricesBySound(price, sound).variants, paid.variants)
        : ''
    return names === '' ? [] : [`has neither a price for ${names}${sound ? ' with sound' : ''} nor per_unit.`]
  })
  const isSoundMissing = price.with_audio !== undefined && own.with_audio === undefined
  const tiers = printMissing(price.service_tiers, own.service_tiers)
  return [
    ...variants,
    ...(isSoundMissing ? ['has no with_audio: a video with sound costs what one without does.'] : []),
    ...(tiers === '' ? [] : [`has no factor for the service tier ${tiers}: it counts as 1.`]),
  ]
}

/** Returns the gaps in the costs of channels that have some: the cost of such calls is unknown, or that of others. */
export function findMissingCosts({ channels, models }: ConfigFile): Finding[] {
  const byId = new Map(models.map((model) => [model.id, model]))
  return channels.flatMap(({ cost, models: served }, index) =>
    Object.keys(cost === undefined ? {} : served).flatMap((id): Finding[] => {
      const price = byId.get(id)?.pricing
      const own = cost?.[id]
      const path = ['channels', index, 'cost']
      if (price === undefined) return []
      if (own === undefined)
        return [{ path, message: `has no price for ${id}: the cost of its calls is unknown.`, atKey: true }]
      return findGaps(own, price).map((message) => ({ path: [...path, id], message }))
    }),
  )
}
