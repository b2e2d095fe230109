/** The catalog in force: models by id and alias, channels by model and protocol. Built anew for each configuration. */
import type { ChannelEntry, ChannelProtocol, ChatProtocol, ModelEntry } from '../../schemas/catalog.ts'
import { CHAT_PROTOCOLS } from '../../schemas/catalog.ts'
import type { ConfigFile } from '../../schemas/config.ts'
import { type TokenPrice, tokenPrice } from './pricing.ts'

export interface Model {
  readonly id: string
  readonly entry: ModelEntry
  /** Null for a model that is not priced by tokens. */
  readonly price: TokenPrice | null
}

/** One way to an upstream: the channel, and what the model is called there. */
export interface Route {
  readonly channel: ChannelEntry
  readonly upstreamModel: string
}

export interface Catalog {
  readonly config: ConfigFile
  readonly models: readonly Model[]
  readonly channels: readonly ChannelEntry[]
  /** By canonical id or alias; null when neither. */
  resolve(name: string): Model | null
  /** Channels that are on, speak `protocol` and serve the model, in order of priority. */
  routes(model: Model, protocol: ChannelProtocol): readonly Route[]
  /** Client protocols with a channel of their own for the model. */
  supportedProtocols(model: Model): readonly ChatProtocol[]
}

const isOn = (channel: ChannelEntry): boolean => channel.api_key !== ''

/** Null allowlist means every model; an empty one means none. Specification, "API key (sub-key)". */
export const isModelAllowed = (allowedModels: ReadonlySet<string> | null, model: Model): boolean =>
  allowedModels === null || allowedModels.has(model.id)

/** Allowlists may name aliases: the ids they stand for, as `catalog` has it. */
export function resolveAllowlist(
  catalog: Catalog,
  names: readonly string[] | null,
): ReadonlySet<string> | null {
  if (names === null) return null
  return new Set(names.map((name) => catalog.resolve(name)?.id ?? name))
}

export function createCatalog(config: ConfigFile): Catalog {
  const models = config.models.map(
    (entry): Model => ({ id: entry.id, entry, price: tokenPrice(entry.pricing) }),
  )
  const byName = new Map<string, Model>()
  for (const model of models) for (const alias of model.entry.aliases) byName.set(alias, model)
  for (const model of models) byName.set(model.id, model)

  const routesByModel = new Map<string, Route[]>()
  for (const channel of config.channels.filter(isOn)) {
    for (const [name, upstreamModel] of Object.entries(channel.models)) {
      const key = `${channel.protocol} ${byName.get(name)?.id ?? name}`
      routesByModel.set(key, [...(routesByModel.get(key) ?? []), { channel, upstreamModel }])
    }
  }
  for (const routes of routesByModel.values()) routes.sort((a, b) => a.channel.priority - b.channel.priority)
  const routes = (model: Model, protocol: ChannelProtocol) =>
    routesByModel.get(`${protocol} ${model.id}`) ?? []

  return {
    config,
    models,
    channels: config.channels,
    resolve: (name) => byName.get(name) ?? null,
    routes,
    supportedProtocols: (model) => CHAT_PROTOCOLS.filter((protocol) => routes(model, protocol).length > 0),
  }
}
