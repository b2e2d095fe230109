/** Charges what an answer used: the tokens of each model that made it, or its units. */
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { Credits } from '../../../schemas/money.ts'
import { type ModelCharge, printModelCharges } from '../../../src/core/call-log/call-detail.ts'
import { printText } from '../../../src/core/call-log/detail-text.ts'
import { chargeUnits } from '../../../src/core/media/pricing.ts'
import { chargeTokens, type TokenCharge } from '../../../src/core/pricing/charge.ts'
import { type TokenPrice, tokenCharge } from '../../../src/core/pricing/pricing.ts'
import { type ModelUsage, NO_USAGE, sumUsage, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { boundUsage } from '../../../src/core/pricing/usage-bounds.ts'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'
import type { Model, ModelAtChannel, Route } from '../../../src/core/routing/catalog.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import { findByUpstreamName, nameOthersAt } from '../other-models.ts'
import type { AdmittedCall } from '../precharge.ts'

/** The charge of a call, by its tokens or by its units. */
export interface CallCharge extends TokenCharge {
  /** As the row has it; absent where tokens are charged, or nothing is. */
  readonly unitCount?: string
  /** What the operator pays; null where the channel has no cost. */
  readonly upstreamCost: Credits | null
  /** Further pieces of the detail. */
  readonly more: string
  /** The upstream's name of a model that the catalog does not have; empty without one. */
  readonly unknownModel: string
}

interface ChargedAnswer {
  readonly admitted: AdmittedCall
  /** Null where no attempt was made. */
  readonly route: Route | null
  readonly metered: Metered
  /** As it is to be billed. */
  readonly used: TokenUsage
  readonly source: Settlement['usage_source']
}

/** What one of several models used. */
interface Part extends ModelUsage {
  readonly priced: Model
  /** The operator's price; null without one. */
  readonly cost: TokenPrice | null
  readonly isUnknown: boolean
}

/** Runs of one model in one call that a report is believed to count. */
const BELIEVED_RUNS = 100
/** Tokens of an advice of which no report came, where the client set no limit: vendors speak of 1,800. */
const USUAL_ADVICE_TOKENS = 2048

/** Returns what each model used; null where only the model of the call did. */
function listModelUsage({
  admitted,
  route,
  metered,
  used,
  source,
}: ChargedAnswer): readonly ModelUsage[] | null {
  if (used.byModel !== undefined) return used.byModel
  if (route === null || source === 'none' || admitted.others.length === 0) return null
  const names = nameOthersAt(admitted, route)
  const advisor = admitted.others.find(({ field, name }) => field === 'advisor' && names.has(name))
  const { unreportedAdvice: advised = 0, model = '' } = metered
  if (advised > 0 && advisor !== undefined) {
    const runs = Math.min(advised, BELIEVED_RUNS)
    const output = runs * (advisor.outputLimit ?? USUAL_ADVICE_TOKENS)
    const usage = { ...NO_USAGE, prompt: runs * used.prompt, output }
    const advice = { model: names.get(advisor.name)!, runs, usage }
    return [{ model: '', runs: 1 + runs, usage: used }, advice]
  }
  const isOther = model !== '' && !isRequestedModel(route.upstreamModel, model)
  const isFallback = [...names.values()].some((name) => isRequestedModel(name, model))
  return isOther && isFallback ? [{ model, runs: 1, usage: used }] : null
}

/** Finds the prices of a part. Of several models, or for an unknown one, the dearest counts: an invoice is never higher. */
function priceModel(admitted: AdmittedCall, route: Route, part: ModelUsage): Part {
  const own: ModelAtChannel = { model: admitted.model, route }
  const isOwn = part.model === '' || isRequestedModel(route.upstreamModel, part.model)
  const found = isOwn ? [own] : findByUpstreamName(admitted, route, part.model)
  const isUnknown = found.length === 0
  const candidates = isUnknown ? [own, ...admitted.catalog.modelsAt(route.channel.id)] : found
  const chargeAt = ({ model }: ModelAtChannel): Credits =>
    tokenCharge(model.price!, part.usage, admitted.request.submittedAt)
  const dearest = candidates.reduce((one, other) => (chargeAt(other) > chargeAt(one) ? other : one))
  return { ...part, priced: dearest.model, cost: isUnknown ? null : dearest.route.cost, isUnknown }
}

/** Charges each model's tokens at its own price. The tools count as the requested model's. */
function chargeModels(answer: ChargedAnswer, route: Route, parts: readonly ModelUsage[]): CallCharge {
  const { admitted, metered, used, source } = answer
  const { call, request } = admitted
  const { serverToolCalls, extra } = used
  const priced = parts.map((part) => priceModel(admitted, route, part))
  const charged = priced.map((part) => {
    const runs = Math.min(part.runs, BELIEVED_RUNS)
    return {
      part,
      charge: chargePart(answer, part.priced, part.usage, { ...call, prompts: runs, choices: runs }),
    }
  })
  const tools = {
    ...NO_USAGE,
    serverToolCalls,
    ...(extra !== undefined && { extra: { ...extra, cacheWrite1h: 0 } }),
  }
  if (serverToolCalls > 0 && parts.every(({ usage }) => usage.serverToolCalls === 0)) {
    const part: Part = {
      model: '',
      runs: 1,
      usage: tools,
      priced: admitted.model,
      cost: route.cost,
      isUnknown: false,
    }
    charged.push({ part, charge: chargePart(answer, admitted.model, tools, call) })
  }
  const all = charged.map(({ charge }) => charge)
  const costs = charged.map(({ part: { cost }, charge: { usage, serviceTier } }) =>
    cost === null ? null : tokenCharge(cost, usage, request.submittedAt, serviceTier),
  )
  return {
    cost: all.reduce((sum, { cost }) => sum + cost, 0n),
    usage: sumUsage(all.map(({ usage }) => usage)),
    source,
    suspect: [...new Set(all.map(({ suspect }) => suspect))].filter((fault) => fault !== '').join(', '),
    serviceTier: metered.serviceTier ?? '',
    terms: null,
    upstreamCost: costs.reduce((sum, cost) => (sum === null || cost === null ? null : sum + cost), 0n),
    more: printModelCharges(charged.map(({ part, charge }) => toModelCharge(part, charge))),
    unknownModel: priced.find(({ isUnknown }) => isUnknown)?.model ?? '',
  }
}

const toModelCharge = (
  { model, priced, isUnknown }: Part,
  { usage, cost, terms }: TokenCharge,
): ModelCharge => ({
  model: isUnknown ? model : priced.id,
  ...(isUnknown && { pricedAs: priced.id }),
  ...{ usage, cost, terms: terms! },
})

const chargePart = (
  { admitted: { request }, metered, source }: ChargedAnswer,
  model: Model,
  used: TokenUsage,
  call: AdmittedCall['call'],
  reported: TokenUsage | null = used,
  contradictions = metered.suspect ?? '',
): TokenCharge =>
  chargeTokens({
    model: model.entry,
    call,
    price: model.price!,
    submittedAt: request.submittedAt,
    used,
    source,
    reported,
    contradictions,
    // Read no sooner than needed: some answers count their characters on demand.
    characters: () => metered.characters,
    serviceTier: metered.serviceTier ?? '',
  })

/** Charges the units of the call: as reported, within what it can have, or by estimate. */
function chargeCallUnits({ admitted, route, metered, used, source }: ChargedAnswer): CallCharge {
  const { request, model, call } = admitted
  const { type, count, most } = call.units!
  const reported = metered.units ?? count
  const beyond = reported > most ? `${type} ${reported} > ${most}` : ''
  const units = source === 'none' ? 0 : Math.min(reported, most)
  const { cost, units: unitCount, line } = chargeUnits(model.entry.pricing!, units, request.submittedAt)
  const own = route?.channel.cost?.[model.id]
  return {
    ...{ cost, usage: used, source, serviceTier: '', terms: null, unknownModel: '' },
    suspect: [metered.suspect ?? '', beyond].filter((fault) => fault !== '').join(', '),
    upstreamCost: own === undefined ? null : chargeUnits(own, units, request.submittedAt).cost,
    more: source === 'none' ? '' : printText('charge', line, Number.POSITIVE_INFINITY),
    ...(source !== 'none' && { unitCount }),
  }
}

/** Charges what the answer used. What is not charged costs the operator what was reported of it. */
export function chargeAnswer(answer: ChargedAnswer): CallCharge {
  const { admitted, route, metered, used } = answer
  const { model, call } = admitted
  if (model.price === null) return chargeCallUnits(answer)
  const parts = listModelUsage(answer)
  const ofModels = parts === null || route === null ? null : chargeModels(answer, route, parts)
  const suspect = ofModels?.suspect ?? metered.suspect ?? ''
  // Of a report that cannot be believed, what was delivered is charged.
  if (ofModels !== null && suspect === '') return ofModels
  const charge = chargePart(answer, model, used, call, metered.usage, suspect)
  return { ...charge, upstreamCost: chargeOperator(answer, charge), more: '', unknownModel: '' }
}

/** Returns what the operator pays for what was reported; null where the channel has no cost. */
function chargeOperator(
  { admitted: { request, model, call }, route, metered, source }: ChargedAnswer,
  { usage, serviceTier }: TokenCharge,
): Credits | null {
  const cost = route?.cost ?? null
  if (cost === null) return null
  const reported = source === 'none' ? (metered.usage ?? NO_USAGE) : usage
  return tokenCharge(cost, boundUsage(reported, model.entry, call).usage, request.submittedAt, serviceTier)
}
