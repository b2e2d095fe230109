/**
 * Which models there are: `/v1/models` as the chat-completions and messages SDKs read it, `/v1beta/models` as the
 * generate-content SDK does, and the public catalog.
 */
import {
  type ContentModel,
  type ContentModelList,
  contentModelsQuery,
  modelsQuery,
} from '../../schemas/accounts/models.ts'
import type { ModelEntry, Pricing, PricingFields } from '../../schemas/config/catalog.ts'
import { printCredits, printRate, type Rate } from '../../schemas/money.ts'
import { pricesInOrder, pricingAt } from '../../src/core/pricing/changes.ts'
import { priceAt, type TokenPrice } from '../../src/core/pricing/pricing.ts'
import type { KindRates } from '../../src/core/pricing/terms.ts'
import {
  type AllowedModels,
  type Catalog,
  isModelAllowed,
  type Model,
  mayCall,
  noSuchModel,
  resolveAllowlist,
} from '../../src/core/routing/catalog.ts'
import { resourceName, withoutCollection } from '../../src/core/routing/generate-model-name.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { answerJson } from '../calls/pipeline.ts'
import { readQuery, refuseParameter } from '../calls/query.ts'

const HTTP_NOT_FOUND = 404
const MS_PER_SECOND = 1000
/** More of them would show that numbers are binary. */
const EXACT_DIGITS = 12
const CONTENT_PROTOCOL = 'generate-content'

const displayName = (entry: ModelEntry): string => entry.display_name ?? entry.id

/** The catalog knows no release dates: a model is as old as the installation. */
const listEntry = ({ id, entry, price }: Model, { installedAt, now = Date.now }: ModelsDeps) => ({
  id,
  object: 'model',
  created: Math.floor(installedAt.getTime() / MS_PER_SECOND),
  owned_by: entry.owned_by,
  type: 'model',
  display_name: displayName(entry),
  created_at: installedAt.toISOString(),
  endpoint_type: entry.endpoint_type,
  max_input_tokens: entry.context_window ?? null,
  max_tokens: entry.max_output_tokens ?? null,
  limit: {
    ...(entry.context_window != null && { context: entry.context_window }),
    ...(entry.max_output_tokens != null && { output: entry.max_output_tokens }),
  },
  cost: price === null || entry.pricing === undefined ? {} : printCosts(entry.pricing, price, now()),
})

/** Returns the prices of 1M tokens as numbers, the discount included. */
function printCosts(pricing: Pricing, price: TokenPrice, now: number) {
  const { input, output, cached_input, cache_write, discount } = printPublicPricing(pricing, price, now)
  const prices = { input, output, cache_read: cached_input, cache_write }
  const known = Object.entries(prices).filter(([, amount]) => amount !== null)
  const toNumber = (amount: string | null) =>
    Number((Number(amount) * Number(discount ?? 1)).toPrecision(EXACT_DIGITS))
  return Object.fromEntries(known.map(([name, amount]) => [name, toNumber(amount)]))
}

function listCallableModels(catalog: Catalog, { key, account }: AllowedModels): readonly Model[] {
  const allowed = [key, account].map(({ allowedModels }) => resolveAllowlist(catalog, allowedModels))
  return catalog.models.filter(
    (model) => model.entry.callable && allowed.every((names) => isModelAllowed(names, model)),
  )
}

/**
 * Returns the model with this id or alias.
 * @throws Failure `model_not_found` with 404: a model that the key may not call is not listed either
 */
function findCallableModel(catalog: Catalog, caller: AllowedModels, name: string): Model {
  const model = catalog.resolve(name)
  if (model === null || !model.entry.callable || !mayCall(catalog, caller, model))
    throw noSuchModel(name, HTTP_NOT_FOUND)
  return model
}

/** Returns the page in front of or behind a model; without a limit, all there are. @throws Failure `invalid_request` */
function cutPage(found: readonly Model[], query: string) {
  const { limit = found.length, after_id: after, before_id: before } = readQuery(modelsQuery, query)
  const findPlace = (name: 'after_id' | 'before_id', id: string) => {
    const place = found.findIndex((model) => model.id === id)
    if (place < 0) throw refuseParameter(name, 'begin again without it')
    return place
  }
  const start = after === undefined ? 0 : findPlace('after_id', after) + 1
  const end = before === undefined ? found.length : findPlace('before_id', before)
  const isBackwards = after === undefined && before !== undefined
  const rest = found.slice(start, end)
  const page = isBackwards ? rest.slice(Math.max(0, rest.length - limit)) : rest.slice(0, limit)
  return { page, hasMore: page.length < rest.length }
}

function printModelList(deps: ModelsDeps, caller: AllowedModels, request: GatewayRequest) {
  const catalog = deps.catalog()
  const { page, hasMore } = cutPage(listCallableModels(catalog, caller), request.query)
  const data = page.map((found) => listEntry(found, deps))
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    // Codex reads this name too. It takes a model's whole prompt from an entry, so it gets none and uses its own.
    ...(isContentClient(request) ? printContentModels(catalog, caller, request.query) : { models: [] }),
  }
}

/** The SDKs of generate-content present their key so, and call the version that all protocols share by default. */
const isContentClient = ({ header }: GatewayRequest): boolean => header('x-goog-api-key') !== ''

const printOptionalRate = (rate: Rate | undefined): string | null =>
  rate === undefined ? null : printRate(rate)

const printPrices = (
  rates: Readonly<Partial<Record<string, Rate>>> | undefined,
): Record<string, string> | null =>
  rates === undefined
    ? null
    : Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, printRate(rate!)]))

/** Returns the price of each kind of tokens besides input and output. */
const printKinds = (kinds: Partial<KindRates>) => ({
  cached_input: printOptionalRate(kinds.cached),
  cache_write: printOptionalRate(kinds.cacheWrite),
  cache_write_1h: printOptionalRate(kinds.cacheWrite1h),
  reasoning: printOptionalRate(kinds.reasoning),
  input_audio: printOptionalRate(kinds.inputAudio),
  output_audio: printOptionalRate(kinds.outputAudio),
  input_image: printOptionalRate(kinds.inputImage),
  output_image: printOptionalRate(kinds.outputImage),
})

const printUnits = ({ per_unit, variants }: Pick<PricingFields, 'per_unit' | 'variants'>) => ({
  per_unit: printOptionalRate(per_unit),
  variants: printPrices(variants),
})

/** Prices before the discount, as they are billed: defaults filled in. A discount that has ended is not shown. */
function printPublicPrices(pricing: PricingFields, tokens: TokenPrice | null, now: number) {
  const { discount_until: until } = pricing
  const isDiscounted = pricing.discount !== undefined && (until === undefined || now < Date.parse(until))
  const base = tokens?.tiers.at(-1)?.full.terms
  const above = tokens?.tiers.slice(0, -1).reverse() ?? []
  return {
    input: printOptionalRate(base?.input),
    output: printOptionalRate(base?.output),
    ...printKinds(base ?? { inputImage: pricing.input_image! }),
    ...printUnits(pricing),
    ...(pricing.with_audio !== undefined && { with_audio: printUnits(pricing.with_audio) }),
    pixel_tiers: pricing.pixel_tiers.map(({ from_pixels, per_unit }) => ({
      from_pixels,
      per_unit: printRate(per_unit),
    })),
    tiers: above.map(({ full: { terms } }) => ({
      from_prompt_tokens: terms.fromPromptTokens,
      input: printRate(terms.input),
      output: printRate(terms.output),
      ...printKinds(terms),
    })),
    server_tool_call: printOptionalRate(pricing.server_tool_call),
    server_tools: printPrices(pricing.server_tools),
    service_tiers: printPrices(pricing.service_tiers),
    minimum: pricing.minimum === undefined ? null : printCredits(pricing.minimum),
    discount: isDiscounted ? printOptionalRate(pricing.discount) : null,
    ...(isDiscounted && pricing.discount_server_tools === true && { discount_server_tools: true }),
    discount_until: isDiscounted && until !== undefined ? new Date(until).toISOString() : null,
  }
}

/** Returns the prices that hold, and those that are planned. */
function printPublicPricing(pricing: Pricing, price: TokenPrice | null, now: number) {
  const at = (instant: number) => (price === null ? null : priceAt(price, instant))
  return {
    unit: pricing.unit,
    ...printPublicPrices(pricingAt(pricing, now), at(now), now),
    changes: pricesInOrder(pricing)
      .filter(({ from }) => from !== null && now < Date.parse(from))
      .map(({ from, fields }) => {
        const instant = Date.parse(from!)
        return { from: new Date(instant).toISOString(), ...printPublicPrices(fields, at(instant), instant) }
      }),
  }
}

const printModel = (catalog: Catalog, model: Model, now: number) => {
  const { entry } = model
  return {
    id: model.id,
    display_name: displayName(entry),
    family: entry.family ?? null,
    owned_by: entry.owned_by,
    callable: entry.callable,
    endpoint_type: entry.endpoint_type,
    supported_protocols: catalog.supportedProtocols(model),
    translated_protocols: catalog.translatedProtocols(model),
    aliases: entry.aliases,
    context_window: entry.context_window ?? null,
    max_output_tokens: entry.max_output_tokens ?? null,
    default_max_tokens: entry.default_max_tokens ?? null,
    capabilities: entry.capabilities,
    images: entry.images ? { ...entry.images, default_size: entry.images.default_size ?? null } : null,
    ...(entry.videos?.default_audio && { videos: { default_audio: true } }),
    pricing: entry.pricing === undefined ? null : printPublicPricing(entry.pricing, model.price, now),
  }
}

export interface CatalogDeps {
  /** Called for each request, so a changed configuration takes effect with the next one. */
  readonly catalog: () => Catalog
  /** Epoch milliseconds. */
  readonly now?: () => number
}

export interface ModelsDeps extends CatalogDeps {
  /** When the database was made: the same in every process, and after a restart. */
  readonly installedAt: Date
}

/** Answers with the models that the key may call. @throws Failure `invalid_request` */
export const answerWithModels = (deps: ModelsDeps): Stage<AuthenticatedCall, never> =>
  answerJson(({ known, request }) => printModelList(deps, known, request))

/** Answers with the model in the path. @throws Failure `model_not_found` */
export const answerWithModel = (deps: ModelsDeps): Stage<AuthenticatedCall, never> =>
  answerJson(({ known, request }) => {
    const catalog = deps.catalog()
    const found = findCallableModel(catalog, known, request.params.model)
    return { ...listEntry(found, deps), ...(isContentClient(request) && printContentModel(catalog, found)) }
  })

/** Returns a model in the shape of the generate-content protocol: its methods are those that the model supports. */
function printContentModel(catalog: Catalog, found: Model): ContentModel {
  const { id, entry } = found
  const routes = catalog.routes(found, CONTENT_PROTOCOL)
  const counts = routes.some(
    ({ channel: { protocol, serve } }) => protocol === CONTENT_PROTOCOL || serve.includes(CONTENT_PROTOCOL),
  )
  return {
    name: resourceName(id),
    displayName: displayName(entry),
    ...(entry.context_window != null && { inputTokenLimit: entry.context_window }),
    ...(entry.max_output_tokens != null && { outputTokenLimit: entry.max_output_tokens }),
    supportedGenerationMethods: [
      ...(routes.length > 0 ? ['generateContent', 'streamGenerateContent'] : []),
      ...(counts ? ['countTokens'] : []),
    ],
  }
}

function printContentModels(catalog: Catalog, caller: AllowedModels, query: string): ContentModelList {
  const { pageSize, pageToken } = readQuery(contentModelsQuery, query)
  const found = listCallableModels(catalog, caller)
  const before = pageToken === undefined ? -1 : found.findIndex(({ id }) => id === pageToken)
  if (pageToken !== undefined && before < 0) throw refuseParameter('pageToken', 'begin again without it')
  const page = found.slice(before + 1, before + 1 + pageSize)
  const last = page.at(-1)
  return {
    models: page.map((one) => printContentModel(catalog, one)),
    ...(last !== undefined && last !== found.at(-1) && { nextPageToken: last.id }),
  }
}

/** Answers with a page of the models that the key may call. @throws Failure `invalid_request` */
export const answerWithContentModels = ({ catalog }: CatalogDeps): Stage<AuthenticatedCall, never> =>
  answerJson(({ known, request }) => printContentModels(catalog(), known, request.query))

/** Answers with the model in the path. @throws Failure `model_not_found` */
export const answerWithContentModel = ({ catalog }: CatalogDeps): Stage<AuthenticatedCall, never> =>
  answerJson(({ known, request: { params } }) => {
    const current = catalog()
    return printContentModel(current, findCallableModel(current, known, withoutCollection(params.model)))
  })

/** Answers with the whole catalog, placeholders too. */
export const answerWithCatalog = ({ catalog, now = Date.now }: CatalogDeps): Stage<Call, never> =>
  answerJson(() => {
    const current = catalog()
    return { models: current.models.map((model) => printModel(current, model, now())) }
  })
