/** The catalog in force: models by id and alias, channels by model and protocol. Built for each configuration. */
import type { Account } from '../../../schemas/accounts/account.ts'
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import type {
  ChannelEntry,
  ChannelProtocol,
  ChatProtocol,
  ModelEntry,
  Strategy,
} from '../../../schemas/config/catalog.ts'
import {
  CHAT_PROTOCOLS,
  PASSED_ENDPOINTS,
  type PassedEndpoint,
  TRANSLATIONS,
} from '../../../schemas/config/catalog.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { cutText } from '../json/cut.ts'
import { listCacheWritingModels, withCacheHits } from '../pricing/cache-hits.ts'
import { type TokenPrice, tokenPrice } from '../pricing/pricing.ts'
import { hasAccess } from './channel-access.ts'

export interface Model {
  readonly id: string
  readonly entry: ModelEntry
  /** Null for a model that is not priced by tokens. */
  readonly price: TokenPrice | null
  readonly strategy: Strategy
  /** Its family bills what it writes to a cache. */
  readonly writesCache: boolean
}

/** One route to an upstream: the channel, and its name of the model. */
export interface Route {
  readonly channel: ChannelEntry
  readonly upstreamModel: string
  /** The protocol of the request to the upstream: its own, or the client's where it converts by itself. */
  readonly protocol: ChannelProtocol
  /** The operator's own price of the model at this channel; null where the configuration has none. */
  readonly cost: TokenPrice | null
  /** True when the gateway translates: the client uses another protocol than the upstream. */
  readonly isTranslated: boolean
}

/** A model that a channel serves. */
export interface ModelAtChannel {
  readonly model: Model
  /** For clients of the channel's own protocol. */
  readonly route: Route
}

/** Returns a name of the route's channel and model. An upstream may refuse for one model what it accepts for another. */
export const routeName = ({ channel, upstreamModel }: Route): string => `${channel.id} ${upstreamModel}`

export interface Catalog {
  readonly config: ConfigFile
  readonly models: readonly Model[]
  readonly channels: readonly ChannelEntry[]
  /** Returns the model with this canonical id or alias; null without one. */
  resolve(name: string): Model | null
  /** Ways for clients of `protocol` to channels that are on, in order of priority, translated ones behind their equals. */
  routes(model: Model, protocol: ChannelProtocol): readonly Route[]
  /** Returns the chat models that have a price and that the channel serves. */
  modelsAt(channelId: string): readonly ModelAtChannel[]
  /** Returns the models that serve calls of the model when its channels have failed, in order. */
  fallbacks(model: Model): readonly Model[]
  /** Returns the client protocols with a native channel for the model. */
  supportedProtocols(model: Model): readonly ChatProtocol[]
  /** Returns the client protocols that only translating channels have for the model. */
  translatedProtocols(model: Model): readonly ChatProtocol[]
  /** Returns whether a channel that is on has the model. */
  isServed(model: Model): boolean
}

const NO_MODELS: readonly Model[] = []
const NONE_SERVED: readonly ModelAtChannel[] = []
/** No channel is paused or draining. */
const NONE_HELD: ReadonlySet<string> = new Set()

/** Returns whether an allowlist permits the model. Null permits every model; an empty list none. */
export const isModelAllowed = (allowedModels: ReadonlySet<string> | null, model: Model): boolean =>
  allowedModels === null || allowedModels.has(model.id)

/** Returns an allowlist with the ids of the aliases that it names, by `catalog`. */
export function resolveAllowlist(
  catalog: Catalog,
  names: readonly string[] | null,
): ReadonlySet<string> | null {
  if (names === null) return null
  return new Set(names.map((name) => catalog.resolve(name)?.id ?? name))
}

/** The models that a key may call, and those that its account may. */
export interface AllowedModels {
  readonly key: Pick<ApiKey, 'allowedModels'>
  readonly account: Pick<Account, 'allowedModels'>
}

/** Returns whether both allowlists, the key's and its account's, have the model. */
export const mayCall = (catalog: Catalog, { key, account }: AllowedModels, model: Model): boolean =>
  isModelAllowed(resolveAllowlist(catalog, key.allowedModels), model) &&
  isModelAllowed(resolveAllowlist(catalog, account.allowedModels), model)

/** Returns the endpoint to whose path requests for the model pass; null for any other model. */
export const findPassedEndpoint = ({ endpoint_type: type }: Pick<ModelEntry, 'endpoint_type'>) =>
  PASSED_ENDPOINTS.find((endpoint) => endpoint === type) ?? null

/** Returns the client protocols that reach the channel, each with the channel's protocol for it. */
function listChannelProtocols(
  channel: ChannelEntry,
  endpoint: PassedEndpoint | null,
): Array<readonly [ChannelProtocol, ChannelProtocol]> {
  if (endpoint !== null) return channel.protocol === PASSING_PROTOCOL ? [[endpoint, endpoint]] : []
  const own = [channel.protocol, ...channel.converts.filter((client) => client !== channel.protocol)]
  const translated = TRANSLATIONS.filter(([client, to]) => to === channel.protocol && !own.includes(client))
  const served = channel.serve.filter(
    (client) => !own.includes(client) && !translated.some(([known]) => known === client),
  )
  const { protocol } = channel
  return [
    ...own.map((client) => [client, client] as const),
    ...translated,
    ...served.map((client) => [client, protocol] as const),
  ]
}

/** The protocol of channels that have such endpoints. */
export const PASSING_PROTOCOL = 'chat-completions'

const byPriority = (a: Route, b: Route): number =>
  a.channel.priority - b.channel.priority || Number(a.isTranslated) - Number(b.isTranslated)

/** @param held ids of channels that are paused or draining: no route leads to them */
export function createCatalog(config: ConfigFile, held: ReadonlySet<string> = NONE_HELD): Catalog {
  const writesCache = listCacheWritingModels(config.models, config.channels)
  const models = config.models.map((given): Model => {
    const { pricing } = given
    const isCacheWriting = writesCache(given)
    const isFilled = pricing !== undefined && isCacheWriting
    const entry = isFilled ? { ...given, pricing: withCacheHits(pricing) } : given
    return {
      id: entry.id,
      entry,
      price: tokenPrice(entry.pricing),
      strategy: entry.strategy ?? config.strategy,
      writesCache: isCacheWriting,
    }
  })
  const byName = new Map<string, Model>()
  for (const model of models) for (const alias of model.entry.aliases) byName.set(alias, model)
  for (const model of models) byName.set(model.id, model)

  const routesByModel = new Map<string, Map<ChannelProtocol, Route[]>>()
  const modelsByChannel = new Map<string, ModelAtChannel[]>()
  const isOn = (channel: ChannelEntry): boolean => hasAccess(channel) && !held.has(channel.id)
  for (const channel of config.channels.filter(isOn)) {
    for (const [name, upstreamModel] of Object.entries(channel.models)) {
      const model = byName.get(name)
      const modelId = model?.id ?? name
      const own = channel.cost?.[name]
      const isFilled = own !== undefined && model !== undefined && writesCache(model.entry)
      const cost = tokenPrice(isFilled ? withCacheHits(own) : own)
      const endpoint = model === undefined ? null : findPassedEndpoint(model.entry)
      for (const [client, protocol] of listChannelProtocols(channel, endpoint)) {
        const route = { channel, upstreamModel, protocol, cost, isTranslated: client !== protocol }
        const byProtocol = routesByModel.get(modelId) ?? new Map<ChannelProtocol, Route[]>()
        routesByModel.set(modelId, byProtocol.set(client, [...(byProtocol.get(client) ?? []), route]))
        if (client !== channel.protocol || model === undefined || model.price === null) continue
        modelsByChannel.set(channel.id, [...(modelsByChannel.get(channel.id) ?? []), { model, route }])
      }
    }
  }
  for (const byProtocol of routesByModel.values())
    for (const found of byProtocol.values()) found.sort(byPriority)
  const routes = (model: Model, protocol: ChannelProtocol) => routesByModel.get(model.id)?.get(protocol) ?? []
  const isNative = (model: Model, protocol: ChatProtocol): boolean =>
    routes(model, protocol).some((route) => !route.isTranslated)

  const fallbacksById = new Map(
    models
      .filter(({ entry }) => entry.fallbacks.length > 0)
      .map(({ id, entry }) => [id, entry.fallbacks.flatMap((name) => byName.get(name) ?? [])] as const),
  )

  return {
    config,
    models,
    channels: config.channels,
    resolve: (name) => byName.get(name) ?? null,
    routes,
    modelsAt: (channelId) => modelsByChannel.get(channelId) ?? NONE_SERVED,
    fallbacks: ({ id }) => fallbacksById.get(id) ?? NO_MODELS,
    supportedProtocols: (model) => CHAT_PROTOCOLS.filter((protocol) => isNative(model, protocol)),
    translatedProtocols: (model) =>
      CHAT_PROTOCOLS.filter((protocol) => routes(model, protocol).length > 0 && !isNative(model, protocol)),
    isServed: ({ id }) => routesByModel.has(id),
  }
}

const SHOWN_NAME_MAX_CHARS = 200

/** Returns the failure with the catalog's status, or the endpoint's own. */
export const noSuchModel = (name: string, status?: number): Failure =>
  new Failure('model_not_found', `The model '${cutText(name, SHOWN_NAME_MAX_CHARS)}' does not exist.`, {
    status,
  })

/** Returns the failure with the catalog's status, or the endpoint's own. */
export const notAllowed = ({ id }: Model, status?: number): Failure =>
  new Failure('model_not_allowed', `This API key may not call the model '${id}'.`, { status })

/** @throws Failure `model_not_found`, with the catalog's status or the endpoint's own */
export function selectCallable(catalog: Catalog, name: string, status?: number): Model {
  const model = catalog.resolve(name)
  if (model === null || !model.entry.callable) throw noSuchModel(name, status)
  return model
}
