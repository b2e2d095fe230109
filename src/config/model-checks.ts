/** What must hold between the fields of a model, and between the models of one catalog. */
import { type ModelEntry, PRICE_UNITS, type Pricing } from '../../schemas/catalog.ts'
import { ONE_RATE } from '../../schemas/money.ts'
import type { Path } from './problem.ts'
import type { Salvaged } from './salvage.ts'

export type SoundModel = Salvaged<ModelEntry>
type SoundPricing = Salvaged<Pricing>

/** A finding of a cross check. */
export interface Finding {
  readonly path: Path
  readonly message: string
  /** The field's name is what is wrong, not its value. */
  readonly atKey?: boolean
}

export function checkModels(models: readonly SoundModel[]): Finding[] {
  return [...checkNames(models), ...models.flatMap((model, index) => checkModel(model, ['models', index]))]
}

function checkNames(models: readonly SoundModel[]): Finding[] {
  const findings: Finding[] = []
  const owners = new Map<string, string>()
  const claim = (name: string, owner: string, path: Path) => {
    const other = owners.get(name)
    if (other === undefined) owners.set(name, owner)
    else findings.push({ path, message: `"${name}" is already ${other}.` })
  }
  for (const [index, { id }] of models.entries()) {
    if (id !== undefined) claim(id, `the id of models[${index}]`, ['models', index, 'id'])
  }
  for (const [index, { aliases = [] }] of models.entries()) {
    for (const [place, alias] of aliases.entries())
      claim(alias, `an alias of models[${index}]`, ['models', index, 'aliases', place])
  }
  return findings
}

function checkModel(model: SoundModel, path: Path): Finding[] {
  const findings: Finding[] = []
  const { default_max_tokens: usual, max_output_tokens: most, pricing } = model
  if (usual !== undefined && most !== undefined && usual > most) {
    const message = `must be at most max_output_tokens, which is ${most}.`
    findings.push({ path: [...path, 'default_max_tokens'], message })
  }
  if (pricing !== undefined) {
    const inPricing = [
      ...checkUnit(model, pricing),
      ...checkFields(pricing),
      ...checkTiers(pricing),
      ...checkDiscount(pricing),
    ]
    return [
      ...findings,
      ...inPricing.map(([at, message]) => ({ path: [...path, 'pricing', ...at], message })),
    ]
  }
  if (model.callable) {
    const message =
      'is required: a model that can be called has a price. callable: false lists it without one.'
    findings.push({ path: [...path, 'pricing'], message })
  }
  return findings
}

/** A finding within `pricing`: the path from there, and the message. */
type PricingFinding = readonly [at: Path, message: string]

function checkUnit(model: SoundModel, { unit }: SoundPricing): PricingFinding[] {
  if (unit === undefined || unit === '1M_tokens' || model.endpoint_type !== null) return []
  const others = PRICE_UNITS.filter((name) => name !== '1M_tokens').join(', ')
  return [[['unit'], `must be 1M_tokens for a chat model; ${others} go with an endpoint_type.`]]
}

const TOKEN_FIELDS = ['input', 'output', 'cached_input', 'cache_write', 'server_tool_call'] as const
const UNIT_FIELDS = ['per_unit', 'variants'] as const

function checkFields(pricing: SoundPricing): PricingFinding[] {
  const { unit, tiers = [] } = pricing
  if (unit === undefined) return []
  const byTokens = unit === '1M_tokens'
  const foreign = (byTokens ? UNIT_FIELDS : TOKEN_FIELDS).filter((field) => pricing[field] !== undefined)
  const findings: PricingFinding[] = foreign.map((field) => [[field], `does not go with unit ${unit}.`])
  if (byTokens) {
    const missing = (['input', 'output'] as const).filter((field) => pricing[field] === undefined)
    return [
      ...findings,
      ...missing.map((field): PricingFinding => [[field], `is required with unit ${unit}.`]),
    ]
  }
  if (pricing.per_unit === undefined && Object.keys(pricing.variants ?? {}).length === 0)
    findings.push([['per_unit'], `is required with unit ${unit}, or at least one of variants.`])
  if (tiers.length > 0) findings.push([['tiers'], `does not go with unit ${unit}.`])
  return findings
}

function checkTiers({ tiers = [] }: SoundPricing): PricingFinding[] {
  return tiers.flatMap(({ from_prompt_tokens: from }, index): PricingFinding[] => {
    const before = tiers[index - 1]?.from_prompt_tokens
    if (before === undefined || from > before) return []
    const message = `must be more than ${before} of the tier before it: tiers stand in ascending order.`
    return [[['tiers', index, 'from_prompt_tokens'], message]]
  })
}

function checkDiscount({ discount, discount_until }: SoundPricing): PricingFinding[] {
  if (discount === undefined)
    return discount_until === undefined ? [] : [[['discount_until'], 'needs a discount that it ends.']]
  if (discount > 0n && discount <= ONE_RATE) return []
  const message = 'must be above 0 and at most 1: it is the factor on every price, so "0.8" is 20 % off.'
  return [[['discount'], message]]
}
