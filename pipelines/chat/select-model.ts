/**
 * Selects the model and its routes: those that the key may use, that have the tools of the call, and that its links may
 * go to. See docs/errors.md, "Catalog"; docs/api-rules.md, "Built-in tools" and "Links from clients".
 */

import { catchError, from, map, of } from 'rxjs'
import {
  type CallProtocol,
  CHAT_PROTOCOLS,
  PASSED_ENDPOINTS,
  type ServerTool,
} from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { ROUTES } from '../../schemas/routes.ts'
import { findFactor, priceAt } from '../../src/core/pricing/pricing.ts'
import type { Route } from '../../src/core/routing/catalog.ts'
import {
  type Catalog,
  findPassedEndpoint,
  type Model,
  mayCall,
  notAllowed,
  selectCallable,
} from '../../src/core/routing/catalog.ts'
import type { Stage } from '../calls/pipeline.ts'
import { type CallWithOthers, listOtherModels } from './other-models.ts'
import type { ReadCall } from './read-call.ts'

/** A model with the routes that a call may take to it. */
export interface ServedModel {
  readonly model: Model
  readonly routes: readonly Route[]
}

export interface PricedCall extends ReadCall, ServedModel, CallWithOthers {
  /** The model that the request names. Another one serves where this one has no channel. */
  readonly requested: Model
  /** Models that serve when every channel of the one before has failed, in order. */
  readonly fallbacks: readonly ServedModel[]
}

const NO_FALLBACKS: readonly ServedModel[] = []

/** Returns whether the model has a price for the requested service tier: without one it would cost another's. */
function hasTierPrice({ call, request }: ReadCall, { price }: Model): boolean {
  const { serviceTier } = call
  if (serviceTier === undefined || price === null) return true
  return findFactor(priceAt(price, request.submittedAt), serviceTier) !== null
}

function requireTierPrice(call: ReadCall, model: Model): void {
  if (hasTierPrice(call, model)) return
  const { serviceTier } = call.call
  throw new Failure(
    'invalid_request',
    `service_tier: no price is set for '${serviceTier}' of the model '${model.id}'; leave it out.`,
  )
}

/** Returns the routes of a call; none to a model that has no price for it. */
const listRoutes = (catalog: Catalog, model: Model, protocol: CallProtocol): readonly Route[] =>
  model.price === null && findPassedEndpoint(model.entry) === null ? [] : catalog.routes(model, protocol)

/**
 * Adds the model and the routes to it.
 * @param find returns the model with a name. @throws Failure `model_not_found`
 * @throws Failure `model_not_found`, `model_not_allowed`, `no_channel_available`, `invalid_request`
 */
export const selectModel =
  <C extends ReadCall>(
    current: () => Catalog,
    find: (catalog: Catalog, name: string) => Model = selectCallable,
  ): Stage<C, C & PricedCall> =>
  (call: C) => {
    const catalog = current()
    const model = find(catalog, call.call.model)
    if (!mayCall(catalog, call.known, model)) throw notAllowed(model)
    requireTierPrice(call, model)
    const routes = listRoutes(catalog, model, call.protocol)
    const fallbacks = model.entry.fallbacks.length === 0 ? NO_FALLBACKS : listFallbacks(catalog, call, model)
    const first = routes.length > 0 ? { model, routes } : fallbacks[0]
    if (first === undefined) throw notServed(catalog, call.protocol, model)
    const next = routes.length > 0 ? fallbacks : fallbacks.slice(1)
    const others = listOtherModels(catalog, call, [first, ...next], (other) => hasTierPrice(call, other))
    // No second spread: it would double the time of this stage, which every call passes through.
    return {
      ...call,
      catalog,
      requested: model,
      model: first.model,
      routes: first.routes,
      fallbacks: next,
      others,
    }
  }

/** Paths under which a client reaches a model, by protocol. */
const PATHS: Readonly<Record<CallProtocol, string>> = {
  'chat-completions': ROUTES.createChatCompletion.join(' '),
  messages: ROUTES.createMessage.join(' '),
  'generate-content': 'POST /v1beta/models/{model}:generateContent',
  responses: ROUTES.createResponse.join(' '),
  embeddings: ROUTES.createEmbedding.join(' '),
  rerank: ROUTES.rerank.join(' '),
  audio_transcriptions: ROUTES.transcribe.join(' '),
}

/** Names the protocols on which the model is served: clients do not find out otherwise. */
function notServed(catalog: Catalog, protocol: CallProtocol, model: Model): Failure {
  const served = [...CHAT_PROTOCOLS, ...PASSED_ENDPOINTS].filter(
    (other) => listRoutes(catalog, model, other).length > 0,
  )
  const ways = served.map((other) => `${other} (${PATHS[other]})`).join(', ')
  const message = `No channel serves the model '${model.id}' on the ${protocol} protocol.`
  return new Failure('no_channel_available', ways === '' ? message : `${message} It is served on ${ways}.`)
}

/** Returns the fallbacks that the key may call and that have channels. */
const listFallbacks = (catalog: Catalog, call: ReadCall, model: Model): readonly ServedModel[] =>
  catalog
    .fallbacks(model)
    .filter((other) => other.entry.callable && mayCall(catalog, call.known, other))
    .filter((other) => hasTierPrice(call, other))
    .map((other) => ({ model: other, routes: listRoutes(catalog, other, call.protocol) }))
    .filter(({ routes }) => routes.length > 0)

/** A translation leaves this one out, with a warning. */
const DROPPED_IN_TRANSLATION: ServerTool = 'image_generation'
/** The one tool that a translation can express. */
const TRANSLATED: ServerTool = 'web_search'

const notSupported = (tool: ServerTool, modelId: string): Failure =>
  new Failure('tool_not_supported', `The tool '${tool}' is not supported for the model '${modelId}'.`)

/** Returns whether a route has the tool, or leaves it out: a channel that serves a protocol leaves out what it lacks. */
function supports(
  { channel, isTranslated }: Route,
  { entry }: Model,
  client: CallProtocol,
  tool: ServerTool,
): boolean {
  if (isTranslated && (channel.serve as readonly CallProtocol[]).includes(client)) return true
  if (!entry.capabilities[tool]) return false
  if (isTranslated && tool === DROPPED_IN_TRANSLATION) return true
  return channel.tools.includes(tool) && (!isTranslated || tool === TRANSLATED)
}

/**
 * Keeps the routes that have the server tools of the call.
 * @throws Failure `invalid_request`, `tool_not_supported`
 */
export const requireServerTools =
  <C extends PricedCall>(): Stage<C, C> =>
  (priced: C) => {
    const { call, model, protocol, routes } = priced
    const tools = call.builtInTools
    if (tools.length === 0) return priced
    // Before what the model supports: this rule is the first of the interface's list.
    if (protocol === 'chat-completions' && !call.stream)
      throw new Failure(
        'invalid_request',
        `The tool '${tools[0]}' works in streams only: set 'stream' to true.`,
      )
    const fit = filterRoutes({ model, routes }, protocol, tools)
    if (fit.length === 0) {
      const missing = tools.find((tool) => !model.entry.capabilities[tool])
      throw notSupported(missing ?? tools[0]!, model.id)
    }
    const fallbacks = priced.fallbacks
      .map((other) => ({ ...other, routes: filterRoutes(other, protocol, tools) }))
      .filter((other) => other.routes.length > 0)
    return { ...priced, routes: fit, fallbacks }
  }

const filterRoutes = (
  { model, routes }: ServedModel,
  client: CallProtocol,
  tools: readonly ServerTool[],
): readonly Route[] => routes.filter((route) => tools.every((tool) => supports(route, model, client, tool)))

export interface LinkChecker {
  /** Rejects with a `Failure` `invalid_request` that names the link which may not be forwarded. */
  readonly checkLinks: (urls: readonly string[]) => Promise<void>
}

/**
 * Checks the links of a chat request before an upstream gets them: it must not fetch from the operator's network for a
 * client. See docs/api-rules.md, "Links from clients".
 * Keeps the routes that the links of the call may go to: all of them, or those with `private_links`.
 * @throws Failure `invalid_request`
 */
export const checkLinks =
  <C extends PricedCall>(deps: LinkChecker): Stage<C, C> =>
  (call: C) => {
    const { urls } = call.call.links
    if (urls.length === 0) return call
    const models = [call, ...call.fallbacks]
    const trusting = models.map(keepTrustedRoutes)
    if (models.every(({ routes }, index) => trusting[index]!.routes.length === routes.length)) return call
    return from(deps.checkLinks(urls)).pipe(
      map(() => call),
      catchError((error: unknown) => {
        const [first, ...others] = trusting.filter(({ routes }) => routes.length > 0)
        if (first === undefined) throw error
        return of({ ...call, ...first, fallbacks: others })
      }),
    )
  }

const keepTrustedRoutes = ({ model, routes }: ServedModel): ServedModel => ({
  model,
  routes: routes.filter(({ channel }) => channel.private_links),
})
