/** Checks the fields of a model against each other, and the names and the fallbacks of one catalog. */
import {
  type ENDPOINT_TYPES,
  type ModelEntry,
  type PassedEndpoint,
  PRICE_UNITS,
  type Pricing,
} from '../../schemas/config/catalog.ts'
import { MOTION_GRADES, VIDEO_WORKS } from '../../schemas/media/videos.ts'
import { ONE_RATE } from '../../schemas/money.ts'
import { findVariant } from '../core/media/variants.ts'
import { findPassedEndpoint } from '../core/routing/catalog.ts'
import { suggest } from '../core/suggest.ts'
import type { Path } from './problem.ts'
import type { Salvaged } from './salvage.ts'

export type SoundModel = Salvaged<ModelEntry>
type SoundPricing = Salvaged<Pricing>

/** A finding of a cross check. */
export interface Finding {
  readonly path: Path
  readonly message: string
  /** True when the field's name is wrong, not its value. */
  readonly atKey?: boolean
}

export const checkModels = (models: readonly SoundModel[], names: CatalogNames): Finding[] => [
  ...checkNames(models),
  ...models.flatMap((model, index) => checkModel(model, ['models', index])),
  ...checkFallbacks(models, names),
]

/** The word by which `--models` of the command line means all of them. */
const EVERY_MODEL = 'all'
const TAKEN_NAME = '"all" cannot be the name of a model: --models all means every model.'

function checkNames(models: readonly SoundModel[]): Finding[] {
  const findings: Finding[] = []
  const owners = new Map<string, string>()
  const claim = (name: string, owner: string, path: Path) => {
    if (name.toLowerCase() === EVERY_MODEL) findings.push({ path, message: TAKEN_NAME })
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
  const { images, endpoint_type: type } = model
  if (images !== undefined && type !== undefined && type !== 'images_generations') {
    const message = 'goes with endpoint_type images_generations only.'
    findings.push({ path: [...path, 'images'], message, atKey: true })
  }
  findings.push(...checkVideos(model).map(([at, message]) => ({ path: [...path, ...at], message })))
  if (pricing !== undefined) {
    const inPricing = checkPricing(model, pricing)
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

/** Checks the prices of a model, whether its own or those of a channel's cost. */
export const checkPricing = (model: SoundModel, pricing: SoundPricing): PricingFinding[] => [
  ...checkUnit(model, pricing),
  ...checkPrices(model, pricing),
  ...checkChanges(model, pricing),
]

const checkPrices = (model: SoundModel, pricing: SoundPricing): PricingFinding[] => [
  ...checkFields(model, pricing),
  ...checkTiers(pricing),
  ...checkVariants(model, pricing),
  ...checkAudioPrices(model, pricing),
  ...checkPixelTiers(pricing),
  ...checkDiscount(pricing),
]

/** Each change has all prices, and comes after the one before it. */
function checkChanges(model: SoundModel, { unit, changes = [] }: SoundPricing): PricingFinding[] {
  return changes.flatMap(({ from, ...fields }, index): PricingFinding[] => {
    const before = changes[index - 1]?.from
    const isLater = from === undefined || before === undefined || Date.parse(from) > Date.parse(before)
    const order: PricingFinding[] = isLater
      ? []
      : [[['from'], `must be after ${before} of the change before it: changes must ascend.`]]
    const found = checkPrices(model, { ...fields, ...(unit !== undefined && { unit }) })
    return [...order, ...found].map(([at, message]) => [['changes', index, ...at], message])
  })
}

/** Values that the field `quality` of a grid-style model can produce. */
const GRID_QUALITIES = ['sd', 'hd']

/** A finding within `pricing`: the path from there, and the message. */
type PricingFinding = readonly [at: Path, message: string]

type EndpointType = (typeof ENDPOINT_TYPES)[number]

/** Units that only some endpoints count in; the others go with every endpoint but chat. */
const COUNTED_BY: Readonly<Record<string, readonly EndpointType[]>> = {
  image: ['images_generations'],
  second: ['videos_generations', 'contents_generations_tasks'],
  '1000_characters': ['audio_speech'],
  '1M_tokens': ['embeddings'],
  search: ['rerank'],
  minute: ['audio_transcriptions'],
}

/** Units of endpoints that count in no other. */
const ONLY_UNITS: Readonly<Partial<Record<EndpointType, readonly (typeof PRICE_UNITS)[number][]>>> = {
  embeddings: ['1M_tokens'],
  rerank: ['search'],
  audio_transcriptions: ['minute'],
}

function checkUnit({ endpoint_type: type }: SoundModel, { unit }: SoundPricing): PricingFinding[] {
  if (unit === undefined || type === undefined) return []
  if (type === null) {
    if (unit === '1M_tokens') return []
    const others = PRICE_UNITS.filter((name) => name !== '1M_tokens').join(', ')
    return [[['unit'], `must be 1M_tokens for a chat model; ${others} go with an endpoint_type.`]]
  }
  const right = ONLY_UNITS[type] ?? PRICE_UNITS.filter((name) => COUNTED_BY[name]?.includes(type) ?? true)
  if (right.includes(unit)) return []
  return [[['unit'], `must be one of ${right.join(', ')} for endpoint_type ${type}.`]]
}

const VIDEO_TYPES: readonly (EndpointType | null | undefined)[] = [
  undefined,
  'videos_generations',
  'contents_generations_tasks',
]

function checkVideos({ videos, endpoint_type: type, pricing }: SoundModel): PricingFinding[] {
  if (videos === undefined) return []
  if (!VIDEO_TYPES.includes(type)) return [[['videos'], 'goes with endpoint_type videos_generations only.']]
  const { default_resolution: usual, default_audio: sound } = videos
  if (usual === undefined) return []
  // Each change replaces all prices.
  return [{ from: undefined, ...pricing }, ...(pricing?.changes ?? [])].flatMap(
    ({ from, variants, with_audio }): PricingFinding[] => {
      const priced = sound === true && with_audio !== undefined ? with_audio.variants : variants
      const names = Object.keys(priced ?? {})
      if (names.length === 0 || findVariant(names, usual) !== null) return []
      const since = from === undefined ? '' : ` from ${from} on`
      const message = `must be one of the variants that have a price${since}: ${names.join(', ')}.`
      return [[['videos', 'default_resolution'], message]]
    },
  )
}

/** Returns what a video model does by its name; undefined for one that makes videos of words and pictures. */
const findSpecialWork = ({ id, aliases = [] }: SoundModel) =>
  [id, ...aliases].flatMap((name) => (name === undefined ? [] : (VIDEO_WORKS[name] ?? [])))[0]

/** Returns the values of the request's field that chooses a variant; null where it may be any word. */
function listProducibleVariants(model: SoundModel): readonly string[] | null {
  const { endpoint_type: type, images } = model
  if (type === undefined) return null
  if (type === 'images_generations') return images?.grid === true ? GRID_QUALITIES : null
  if (!VIDEO_TYPES.includes(type)) return []
  const work = findSpecialWork(model)
  if (work === undefined) return null
  return work === 'motion' ? MOTION_GRADES : []
}

/** Refuses prices that no request can select. */
function checkVariants(model: SoundModel, { unit, per_unit, variants }: SoundPricing): PricingFinding[] {
  const names = Object.keys(variants ?? {})
  const producible = listProducibleVariants(model)
  if (unit === '1M_tokens' || names.length === 0 || producible === null) return []
  if (producible.length === 0 && per_unit === undefined)
    return [[['variants'], 'does not go with this model: no request can name one, so it needs per_unit.']]
  const unknown = names.filter((name) => producible.length > 0 && findVariant(producible, name) === null)
  if (unknown.length < names.length || per_unit !== undefined) return []
  return [[['variants'], `has no name that a request can ask for: they are ${producible.join(', ')}.`]]
}

/** Refuses prices of sound that no request can select, and a model whose plain requests have no price. */
function checkAudioPrices(model: SoundModel, { unit, with_audio: priced }: SoundPricing): PricingFinding[] {
  if (priced === undefined || unit === '1M_tokens') return []
  if (!VIDEO_TYPES.includes(model.endpoint_type) || findSpecialWork(model) !== undefined)
    return [[['with_audio'], 'does not go with this model: no request can ask it for sound.']]
  if (model.videos?.default_audio !== true || priced.per_unit !== undefined) return []
  if (Object.keys(priced.variants ?? {}).length > 0) return []
  return [[['with_audio'], 'needs a price: videos.default_audio gives sound to requests that do not say.']]
}

const TOKEN_FIELDS = [
  ...(['input', 'output', 'cached_input', 'cache_write', 'cache_write_1h', 'reasoning'] as const),
  ...(['input_audio', 'output_audio', 'output_image', 'server_tool_call', 'server_tools'] as const),
  ...(['service_tiers', 'minimum', 'discount_server_tools'] as const),
]
const UNIT_FIELDS = ['per_unit', 'variants', 'with_audio'] as const

function checkFields({ endpoint_type: type }: SoundModel, pricing: SoundPricing): PricingFinding[] {
  const { unit, tiers = [] } = pricing
  if (unit === undefined) return []
  const byTokens = unit === '1M_tokens'
  const foreign = (byTokens ? UNIT_FIELDS : TOKEN_FIELDS).filter((field) => pricing[field] !== undefined)
  const findings: PricingFinding[] = foreign.map((field) => [[field], `does not go with unit ${unit}.`])
  if (byTokens) {
    const isWithoutOutput = type === 'embeddings'
    const needed = isWithoutOutput ? (['input'] as const) : (['input', 'output'] as const)
    const missing = needed.filter((field) => pricing[field] === undefined)
    if (isWithoutOutput && (pricing.output ?? 0n) !== 0n)
      findings.push([['output'], 'does not go with endpoint_type embeddings: they have no output.'])
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

/** Prices by size are prices of images, and the smallest images have one too. */
function checkPixelTiers(pricing: SoundPricing): PricingFinding[] {
  const { unit, pixel_tiers: tiers = [], input_image } = pricing
  const findings: PricingFinding[] = []
  if (unit !== undefined && unit !== '1M_tokens' && unit !== 'image' && input_image !== undefined)
    findings.push([['input_image'], `does not go with unit ${unit}.`])
  if (tiers.length === 0) return findings
  if (unit !== undefined && unit !== 'image')
    return [...findings, [['pixel_tiers'], `does not go with unit ${unit}.`]]
  if (Object.keys(pricing.variants ?? {}).length > 0)
    findings.push([
      ['pixel_tiers'],
      'does not go with variants: an image has a price by its size or by its quality.',
    ])
  for (const [index, { from_pixels: from }] of tiers.entries()) {
    const before = tiers[index - 1]?.from_pixels
    if (before === undefined || from === undefined || from > before) continue
    const message = `must be more than ${before} of the tier before it: tiers must ascend.`
    findings.push([['pixel_tiers', index, 'from_pixels'], message])
  }
  return findings
}

function checkTiers({ tiers = [] }: SoundPricing): PricingFinding[] {
  return tiers.flatMap(({ from_prompt_tokens: from }, index): PricingFinding[] => {
    const before = tiers[index - 1]?.from_prompt_tokens
    if (before === undefined || from > before) return []
    const message = `must be more than ${before} of the tier before it: tiers must ascend.`
    return [[['tiers', index, 'from_prompt_tokens'], message]]
  })
}

function checkDiscount({ discount, discount_until, discount_server_tools }: SoundPricing): PricingFinding[] {
  if (discount === undefined)
    return [
      ...(discount_until === undefined
        ? []
        : [[['discount_until'], 'needs a discount that it ends.'] as const]),
      ...(discount_server_tools === undefined
        ? []
        : [[['discount_server_tools'], 'needs a discount that it extends.'] as const]),
    ]
  if (discount > 0n && discount <= ONE_RATE) return []
  const message = 'must be above 0 and at most 1: it is the factor on every price, so "0.8" is 20 % off.'
  return [[['discount'], message]]
}

/** Every name of the catalog: ids, and aliases with their ids. */
export interface CatalogNames {
  readonly ids: ReadonlySet<string>
  readonly aliases: ReadonlyMap<string, string>
  /** Models whose requests pass to the path of an endpoint, with that endpoint. */
  readonly passed: ReadonlyMap<string, PassedEndpoint>
}

export function collectNames(models: readonly SoundModel[]): CatalogNames {
  const aliases = models.flatMap(({ id, aliases = [] }) =>
    id === undefined ? [] : aliases.map((a) => [a, id] as const),
  )
  const passed = models.flatMap(({ id, endpoint_type }) => {
    const endpoint = endpoint_type === undefined ? null : findPassedEndpoint({ endpoint_type })
    return id === undefined || endpoint === null ? [] : [[id, endpoint] as const]
  })
  return {
    ids: new Set(models.flatMap(({ id }) => id ?? [])),
    aliases: new Map(aliases),
    passed: new Map(passed),
  }
}

/** Returns why the model cannot fall back to this name; null if it can. */
function findFallbackFault(
  name: string,
  model: SoundModel,
  models: readonly SoundModel[],
  names: CatalogNames,
) {
  const alias = names.aliases.get(name)
  if (alias !== undefined) return `"${name}" is an alias: name the model by its id, "${alias}".`
  if (!names.ids.has(name)) return `There is no model "${name}" in the catalog.${suggest(name, names.ids)}`
  if (name === model.id) return 'A model cannot serve in place of itself.'
  const other = models.find(({ id }) => id === name)
  if (other?.callable === false) return `"${name}" cannot be called.`
  const isChat = (model.endpoint_type ?? null) === null
  if (isChat && other?.pricing?.unit !== undefined && other.pricing.unit !== '1M_tokens')
    return `"${name}" is no chat model: it is not priced by tokens.`
  if (other?.endpoint_type !== undefined && other.endpoint_type !== model.endpoint_type)
    return `"${name}" is a model of another endpoint: its endpoint_type is ${other.endpoint_type ?? 'that of chat'}.`
  return null
}

const checkFallbacks = (models: readonly SoundModel[], names: CatalogNames): Finding[] =>
  models.flatMap((model, index) =>
    (model.fallbacks ?? []).flatMap((name, place): Finding[] => {
      const message = findFallbackFault(name, model, models, names)
      return message === null ? [] : [{ path: ['models', index, 'fallbacks', place], message }]
    }),
  )
