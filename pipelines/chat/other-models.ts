/**
 * The models that the upstream of a call may ask besides the one that serves it. Each needs a price, at the same channel.
 * See docs/pricing.md, "Other models".
 */
import type { Estimate } from '../../schemas/config/catalog.ts'
import type { Credits } from '../../schemas/money.ts'
import { dearest, type EstimatedCall, estimateAt } from '../../src/core/pricing/estimate.ts'
import { isRequestedModel } from '../../src/core/routing/answered-model.ts'
import {
  type Catalog,
  type Model,
  type ModelAtChannel,
  mayCall,
  type Route,
} from '../../src/core/routing/catalog.ts'
import type { OtherModel } from '../../src/protocols/dialect.ts'
import type { ReadCall } from './read-call.ts'

export interface PricedOther extends OtherModel {
  readonly model: Model
}

/** The part of a call that names its other models. */
export interface CallWithOthers {
  readonly catalog: Catalog
  /** Those that the key may call and that a channel of the call has. */
  readonly others: readonly PricedOther[]
}

const NO_OTHERS: readonly PricedOther[] = []

const findAt = (
  catalog: Catalog,
  { channel, isTranslated }: Route,
  model: Model,
): ModelAtChannel | undefined =>
  isTranslated ? undefined : catalog.modelsAt(channel.id).find((served) => served.model === model)

/**
 * Returns the other models that the key may call.
 * @param serving the models that may serve the call, with their routes
 * @param isPriced whether a model has a price for the service tier of the call
 */
export function listOtherModels(
  catalog: Catalog,
  { call, known }: ReadCall,
  serving: readonly { readonly routes: readonly Route[] }[],
  isPriced: (model: Model) => boolean,
): readonly PricedOther[] {
  if (call.otherModels === undefined) return NO_OTHERS
  return call.otherModels.flatMap((other) => {
    const model = catalog.resolve(other.name)
    if (model === null || !model.entry.callable || !mayCall(catalog, known, model) || !isPriced(model))
      return []
    const isServed = serving.some(({ routes }) =>
      routes.some((route) => findAt(catalog, route, model) !== undefined),
    )
    return isServed ? [{ ...other, model }] : []
  })
}

/** Returns the channel's names of the other models, by the client's. */
export const nameOthersAt = (
  { catalog, others }: CallWithOthers,
  route: Route,
): ReadonlyMap<string, string> =>
  new Map(
    others.flatMap(({ name, model }) => {
      const at = findAt(catalog, route, model)
      return at === undefined ? [] : [[name, at.route.upstreamModel] as const]
    }),
  )

/** Returns the models of the channel that an upstream may mean by a name: those that the client named, if it named any. */
export function findByUpstreamName(
  { catalog, others }: CallWithOthers,
  { channel }: Route,
  name: string,
): readonly ModelAtChannel[] {
  const found = catalog
    .modelsAt(channel.id)
    .filter(({ route }) => isRequestedModel(route.upstreamModel, name))
  const named = found.filter(({ model }) => others.some((other) => other.model === model))
  return named.length > 0 ? named : found
}

/**
 * Returns the estimate of a call that its own model is estimated at `own`: the dearest that may answer or, for the worst
 * case, all that they may cost together.
 */
export function addOthers(
  own: Credits,
  others: readonly PricedOther[],
  { call, model, now, mode }: { call: EstimatedCall; model: Model; now: number; mode: Estimate },
): Credits {
  const estimates = others.map(({ field, outputLimit, mostRuns, model: { price, entry } }) => {
    const isAdvisor = field === 'advisor'
    const asked = isAdvisor
      ? { ...call, outputLimit, thinkingTokens: 0, builtInTools: [], compacts: false }
      : { ...call, outputLimit: outputLimit ?? call.outputLimit }
    const once = estimateAt({ price, pricing: entry.pricing! }, entry, asked, { mode, now })
    const runs = isAdvisor ? (mostRuns ?? model.entry.estimate.server_tool_calls) : 1
    return mode === 'worst_case' ? once * BigInt(runs) : once
  })
  if (mode !== 'worst_case') return dearest([own, ...estimates])
  return estimates.reduce((sum, estimate) => sum + estimate, own)
}
