/** Compares prices of the catalog, or costs of its channels, with a public price list. */
import type { ChannelEntry, ModelEntry } from '../../../schemas/config/catalog.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import type { Rate } from '../../../schemas/money.ts'
import { LISTED_PRICES, type ListedPrice, type PriceList, toCredits } from './price-list.ts'

export interface PriceChange {
  readonly model: string
  /** Null: the model's own price. */
  readonly channel: string | null
  /** The list's name of the model. */
  readonly listed_as: string
  readonly price: ListedPrice
  /** Null where the catalog has none. */
  readonly now: Rate | null
  readonly listed: Rate
}

interface CatalogDifference {
  readonly changes: readonly PriceChange[]
  /** Models that are priced by tokens, and of which the list has no single price. */
  readonly unlisted: readonly string[]
}

interface Listed {
  readonly name: string
  readonly channel: ChannelEntry | null
}

/** Returns the names under which a list may have the model, by the channels that serve it. */
function findNames(
  { id, aliases }: ModelEntry,
  channels: readonly ChannelEntry[],
  listedAs: DifferenceOptions['listedAs'],
): Listed[] {
  const names = channels.flatMap((channel): Listed[] => {
    const upstream = channel.models[id]
    if (upstream === undefined) return []
    const { provider } = channel
    const providers = provider === undefined ? [] : listedAs(provider)
    return [...providers.map((known) => `${known}/${upstream}`), upstream].map((name) => ({ name, channel }))
  })
  return [...names, ...[id, ...aliases].map((name) => ({ name, channel: null }))]
}

type Current = Partial<Record<ListedPrice, Rate | undefined>>

/**
 * Returns the price that holds: a cached token costs what a fresh one does, a written one a quarter more.
 * @param input the list's, which a default follows
 */
function findEffective(prices: Current, price: ListedPrice, input: Rate): Rate | undefined {
  if (price === 'cached_input') return prices.cached_input ?? input
  return price === 'cache_write' ? (prices.cache_write ?? (input * 5n) / 4n) : prices[price]
}

interface Compared {
  readonly model: string
  readonly channel: string | null
  readonly current: Current
  readonly names: readonly Listed[]
}

function listChanges({ model, channel, current, names }: Compared, list: PriceList, perUsd: Rate) {
  const found = names.find(({ name }) => list.get(name) != null)
  if (found === undefined) return null
  const prices = list.get(found.name)!
  return LISTED_PRICES.flatMap((price): PriceChange[] => {
    const inUsd = prices[price]
    if (inUsd === undefined) return []
    const listed = toCredits(inUsd, perUsd)
    if (findEffective(current, price, toCredits(prices.input, perUsd)) === listed) return []
    return [{ model, channel, listed_as: found.name, price, now: current[price] ?? null, listed }]
  })
}

interface DifferenceOptions {
  /** Credits for a US dollar. */
  readonly perUsd: Rate
  /** Compares what channels cost the operator, in place of what models cost customers. */
  readonly ofCosts: boolean
  /** Returns the names of a provider in the list. */
  readonly listedAs: (provider: string) => readonly string[]
}

/** Returns the prices that differ from the list's. Changes nothing. */
export function compareCatalog(
  { models, channels }: Pick<ConfigFile, 'models' | 'channels'>,
  list: PriceList,
  { perUsd, ofCosts, listedAs }: DifferenceOptions,
): CatalogDifference {
  const priced = models.filter(({ pricing }) => pricing?.unit === '1M_tokens')
  const compared = priced.flatMap((entry): Compared[] => {
    const names = findNames(entry, channels, listedAs)
    if (!ofCosts) return [{ model: entry.id, channel: null, current: entry.pricing!, names }]
    return channels
      .filter((channel) => channel.models[entry.id] !== undefined)
      .map((channel) => ({
        model: entry.id,
        channel: channel.id,
        current: channel.cost?.[entry.id] ?? {},
        names: names.filter((name) => name.channel === channel),
      }))
  })
  const results = compared.map((one) => ({ one, changes: listChanges(one, list, perUsd) }))
  return {
    changes: results.flatMap(({ changes }) => changes ?? []),
    unlisted: [...new Set(results.filter(({ changes }) => changes === null).map(({ one }) => one.model))],
  }
}
