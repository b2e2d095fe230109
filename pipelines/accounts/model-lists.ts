/**
 * Which models there are: `/v1/models` as the chat-completions and messages SDKs read it, `/v1beta/models` as the
 * generate-content SDK does, and the public catalogue.
 */
import { defer, type Observable, of } from 'rxjs'
import {
  type ContentModel,
  type ContentModelList,
  contentModelsQuery,
} from '../../schemas/accounts/models.ts'
import type { ModelEntry, Pricing } from '../../schemas/config/catalog.ts'
import { printRate, type Rate } from '../../schemas/money.ts'
import type { TokenPrice } from '../../src/core/pricing/pricing.ts'
import {
  type AllowedModels,
  type Catalog,
  isModelAllowed,
  type Model,
  mayCall,
  resolveAllowlist,
} from '../../src/core/routing/catalog.ts'
import { resourceName } from '../../src/core/routing/generate-model-name.ts'
import type { Reply } from '../../src/http/handler.ts'
import { readModelPath } from '../../src/protocols/generate-content/path.ts'
import { readQuery, refusedParameter } from '../query.ts'
import { jsonReply } from '../replies/json.ts'
import { noSuchModel } from '../stages/select-model.ts'

const HTTP_NOT_FOUND = 404
const MS_PER_SECOND = 1000
const CONTENT_PROTOCOL = 'generate-content'

const displayName = (entry: ModelEntry): string => entry.display_name ?? entry.id

/** The catalog knows no release dates: a model is as old as the installation. */
const listed = ({ id, entry }: Model, installedAt: Date) => ({
  id,
  object: 'model',
  created: Math.floor(installedAt.getTime() / MS_PER_SECOND),
  owned_by: entry.owned_by,
  type: 'model',
  display_name: displayName(entry),
  created_at: installedAt.toISOString(),
})

function callableModels(catalog: Catalog, { key, account }: AllowedModels): readonly Model[] {
  const allowed = [key, account].map(({ allowedModels }) => resolveAllowlist(catalog, allowedModels))
  return catalog.models.filter(
    (model) => model.entry.callable && allowed.every((names) => isModelAllowed(names, model)),
  )
}

/**
 * Returns the model with this id or alias.
 * @throws Failure `model_not_found` with 404: a model that the key may not call is not listed either
 */
function callableModel(catalog: Catalog, caller: AllowedModels, name: string): Model {
  const model = catalog.resolve(name)
  if (model === null || !model.entry.callable || !mayCall(catalog, caller, model))
    throw noSuchModel(name, HTTP_NOT_FOUND)
  return model
}

function modelList({ catalog, installedAt }: ModelsDeps, caller: AllowedModels) {
  const data = callableModels(catalog(), caller).map((found) => listed(found, installedAt))
  return {
    object: 'list',
    data,
    has_more: false,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

const price = (rate: Rate | undefined): string | null => (rate === undefined ? null : printRate(rate))

/** Prices before the discount, as they are billed: defaults filled in. A discount that has ended is not shown. */
function publicPricing(pricing: Pricing, tokens: TokenPrice | null, now: number) {
  const { discount_until: until, variants } = pricing
  const isDiscounted = pricing.discount !== undefined && (until === undefined || now < Date.parse(until))
  const base = tokens?.tiers.at(-1)
  const above = tokens?.tiers.slice(0, -1).reverse() ?? []
  return {
    unit: pricing.unit,
    input: price(base?.input),
    output: price(base?.output),
    cached_input: price(base?.cached),
    cache_write: price(base?.cacheWrite),
    per_unit: price(pricing.per_unit),
    variants: variants
      ? Object.fromEntries(Object.entries(variants).map(([name, rate]) => [name, printRate(rate)]))
      : null,
    pixel_tiers: pricing.pixel_tiers.map(({ from_pixels, per_unit }) => ({
      from_pixels,
      per_unit: printRate(per_unit),
    })),
    input_image: price(pricing.input_image),
    tiers: above.map((tier) => ({
      from_prompt_tokens: tier.fromPromptTokens,
      input: printRate(tier.input),
      cached_input: printRate(tier.cached),
      cache_write: printRate(tier.cacheWrite),
      output: printRate(tier.output),
    })),
    server_tool_call: price(pricing.server_tool_call),
    discount: isDiscounted ? price(pricing.discount) : null,
    discount_until: isDiscounted && until !== undefined ? new Date(until).toISOString() : null,
  }
}

const publicModel = (catalog: Catalog, model: Model, now: number) => {
  const { entry } = model
  return {
    id: model.id,
    display_name: displayName(entry),
    family: entry.family ?? null,
    owned_by: entry.owned_by,
    callable: entry.callable,
    endpoint_type: entry.endpoint_type,
    supported_protocols: catalog.supportedProtocols(model),
    aliases: entry.aliases,
    context_window: entry.context_window ?? null,
    max_output_tokens: entry.max_output_tokens ?? null,
    default_max_tokens: entry.default_max_tokens ?? null,
    capabilities: entry.capabilities,
    images: entry.images ? { ...entry.images, default_size: entry.images.default_size ?? null } : null,
    pricing: entry.pricing === undefined ? null : publicPricing(entry.pricing, model.price, now),
  }
}

export interface ModelsDeps {
  /** Called for each request, so a changed configuration takes effect with the next one. */
  readonly catalog: () => Catalog
  /** When the database was made: the same in every process, and after a restart. */
  readonly installedAt: Date
}

/** Lists the models that the key may call. */
export const models =
  (deps: ModelsDeps) =>
  (caller: AllowedModels): Observable<Reply> =>
    defer(() => of(jsonReply(modelList(deps, caller))))

const MODELS_PATH = '/v1/models/'

function modelNameOf(path: string): string {
  try {
    return decodeURIComponent(path.slice(MODELS_PATH.length))
  } catch {
    return path.slice(MODELS_PATH.length)
  }
}

/** Answers `GET /v1/models/{model}`. */
export const model =
  ({ catalog, installedAt }: ModelsDeps) =>
  (caller: AllowedModels, path: string): Observable<Reply> =>
    defer(() => of(jsonReply(listed(callableModel(catalog(), caller, modelNameOf(path)), installedAt))))

/** Returns a model in the shape of the generate-content protocol: its methods are those that the model supports. */
function contentListed(catalog: Catalog, found: Model): ContentModel {
  const { id, entry } = found
  const isServed = catalog.supportedProtocols(found).includes(CONTENT_PROTOCOL)
  const counts = catalog
    .routes(found, CONTENT_PROTOCOL)
    .some(({ channel }) => channel.protocol === CONTENT_PROTOCOL)
  return {
    name: resourceName(id),
    displayName: displayName(entry),
    ...(entry.context_window != null && { inputTokenLimit: entry.context_window }),
    ...(entry.max_output_tokens != null && { outputTokenLimit: entry.max_output_tokens }),
    supportedGenerationMethods: [
      ...(isServed ? ['generateContent', 'streamGenerateContent'] : []),
      ...(counts ? ['countTokens'] : []),
    ],
  }
}

function contentModelList(catalog: Catalog, caller: AllowedModels, query: string): ContentModelList {
  const { pageSize, pageToken } = readQuery(contentModelsQuery, query)
  const found = callableModels(catalog, caller)
  const before = pageToken === undefined ? -1 : found.findIndex(({ id }) => id === pageToken)
  if (pageToken !== undefined && before < 0) throw refusedParameter('pageToken', 'begin again without it')
  const page = found.slice(before + 1, before + 1 + pageSize)
  const last = page.at(-1)
  return {
    models: page.map((one) => contentListed(catalog, one)),
    ...(last !== undefined && last !== found.at(-1) && { nextPageToken: last.id }),
  }
}

/** Answers `GET /v1beta/models`. */
export const contentModels =
  ({ catalog }: Pick<ModelsDeps, 'catalog'>) =>
  (caller: AllowedModels, query: string): Observable<Reply> =>
    defer(() => of(jsonReply(contentModelList(catalog(), caller, query))))

/** Answers `GET /v1beta/models/{model}`. */
export const contentModel =
  ({ catalog }: Pick<ModelsDeps, 'catalog'>) =>
  (caller: AllowedModels, path: string): Observable<Reply> =>
    defer(() => {
      const current = catalog()
      return of(
        jsonReply(contentListed(current, callableModel(current, caller, readModelPath(path) ?? path))),
      )
    })

/** Lists the whole catalog, placeholders too, without a key. */
export const publicModels =
  ({ catalog, now = Date.now }: Pick<ModelsDeps, 'catalog'> & { readonly now?: () => number }) =>
  (): Observable<Reply> =>
    defer(() => {
      const current = catalog()
      return of(jsonReply({ models: current.models.map((model) => publicModel(current, model, now())) }))
    })
