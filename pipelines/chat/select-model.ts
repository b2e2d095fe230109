/** Selects the model, checks that the key may call it, and finds its routes. See docs/errors.md, "Catalog". */
import { Failure } from '../../schemas/failure.ts'
import { factorOf, priceAt } from '../../src/core/pricing/pricing.ts'
import {
  type Catalog,
  type Model,
  mayCall,
  notAllowed,
  type Route,
  selectCallable,
} from '../../src/core/routing/catalog.ts'
import type { Stage } from '../calls/pipeline.ts'
import type { ReadCall } from './read-call.ts'

/** A model with the routes that a call may take to it. */
export interface ServedModel {
  readonly model: Model
  readonly routes: readonly Route[]
}

export interface PricedCall extends ReadCall, ServedModel {
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
  return factorOf(priceAt(price, request.submittedAt), serviceTier) !== null
}

function requireTierPrice(call: ReadCall, model: Model): void {
  if (hasTierPrice(call, model)) return
  const { serviceTier } = call.call
  throw new Failure(
    'invalid_request',
    `service_tier: no price is set for '${serviceTier}' of the model '${model.id}'; leave it out.`,
  )
}

interface SelectDeps {
  readonly catalog: () => Catalog
}

/**
 * Adds the model and the routes to it.
 * @throws Failure `model_not_found`, `model_not_allowed`, `no_channel_available`, `invalid_request`
 */
export const selectModel =
  <C extends ReadCall>(deps: SelectDeps): Stage<C, C & PricedCall> =>
  (call: C) => {
    const catalog = deps.catalog()
    const model = selectCallable(catalog, call.call.model)
    if (!mayCall(catalog, call.known, model)) throw notAllowed(model)
    requireTierPrice(call, model)
    const routes = model.price === null ? [] : catalog.routes(model, call.protocol)
    const fallbacks = model.entry.fallbacks.length === 0 ? NO_FALLBACKS : fallbacksOf(catalog, call, model)
    if (routes.length > 0) return { ...call, requested: model, model, routes, fallbacks }
    const [first, ...others] = fallbacks
    if (first === undefined)
      throw new Failure('no_channel_available', `No channel serves the model '${model.id}' on this protocol.`)
    return { ...call, requested: model, ...first, fallbacks: others }
  }

/** Returns the fallbacks that the key may call and that have channels. */
const fallbacksOf = (catalog: Catalog, call: ReadCall, model: Model): readonly ServedModel[] =>
  catalog
    .fallbacks(model)
    .filter((other) => other.entry.callable && other.price !== null && mayCall(catalog, call.known, other))
    .filter((other) => hasTierPrice(call, other))
    .map((other) => ({ model: other, routes: catalog.routes(other, call.protocol) }))
    .filter(({ routes }) => routes.length > 0)
