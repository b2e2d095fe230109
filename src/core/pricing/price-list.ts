/**
 * Reads public price lists, in the formats of LiteLLM (US dollars a token, by the name of a model) and models.dev (US
 * dollars a million tokens, by provider and model).
 */
import { divideHalfUp, ONE_RATE, RATE_DECIMALS, type Rate } from '../../../schemas/money.ts'

/** Prices of a model, per million tokens; undefined where the list leaves one out. */
interface ListedPrices {
  readonly input: Rate
  readonly output: Rate
  readonly cached_input: Rate | undefined
  readonly cache_write: Rate | undefined
}
export const LISTED_PRICES = ['input', 'output', 'cached_input', 'cache_write'] as const
export type ListedPrice = (typeof LISTED_PRICES)[number]

/** Prices by the list's name of a model, `provider/model` or `model`; null where providers differ in it. */
export type PriceList = ReadonlyMap<string, ListedPrices | null>

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A number as JavaScript prints it, such as `3e-7` and `0.25`. */
const PRINTED_NUMBER = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/
/** Powers of ten from one token to a million. */
const PER_MILLION = 6

/** Returns a listed number times a power of ten, exact; undefined for anything that is no price. */
function readRate(value: unknown, power: number): Rate | undefined {
  const match = typeof value === 'number' ? PRINTED_NUMBER.exec(String(value)) : null
  if (match === null) return undefined
  const [, whole = '', fraction = '', exponent = '0'] = match
  const places = RATE_DECIMALS + power + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  return places >= 0 ? digits * 10n ** BigInt(places) : divideHalfUp(digits, 10n ** BigInt(-places))
}

function readPrices(
  fields: Fields,
  names: Readonly<Record<ListedPrice, string>>,
  power: number,
): ListedPrices | null {
  const read = (price: ListedPrice) => readRate(fields[names[price]], power)
  const [input, output] = [read('input'), read('output')]
  if (input === undefined || output === undefined) return null
  return { input, output, cached_input: read('cached_input'), cache_write: read('cache_write') }
}

const LITELLM_NAMES = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cached_input: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
} as const
const MODELS_DEV_NAMES = {
  input: 'input',
  output: 'output',
  cached_input: 'cache_read',
  cache_write: 'cache_write',
} as const

function readLiteLlm(list: Fields): PriceList {
  const entries = Object.entries(list).flatMap(([name, fields]) => {
    const prices = isFields(fields) ? readPrices(fields, LITELLM_NAMES, PER_MILLION) : null
    return prices === null ? [] : [[name, prices] as const]
  })
  return new Map(entries)
}

const isSame = (a: ListedPrices, b: ListedPrices): boolean =>
  LISTED_PRICES.every((price) => a[price] === b[price])

function readModelsDev(list: Fields): PriceList {
  const found = new Map<string, ListedPrices | null>()
  for (const [provider, entry] of Object.entries(list)) {
    const models = isFields(entry) && isFields(entry.models) ? entry.models : {}
    for (const [model, fields] of Object.entries(models)) {
      const prices =
        isFields(fields) && isFields(fields.cost) ? readPrices(fields.cost, MODELS_DEV_NAMES, 0) : null
      if (prices === null) continue
      found.set(`${provider}/${model}`, prices)
      const other = found.get(model)
      found.set(model, other === undefined || (other !== null && isSame(other, prices)) ? prices : null)
    }
  }
  return found
}

/** @throws Error for a text in neither format */
export function readPriceList(text: string): PriceList {
  const list = parseList(text)
  const fields = isFields(list) ? list : {}
  const isModelsDev = Object.values(fields).some((value) => isFields(value) && isFields(value.models))
  const found = isModelsDev ? readModelsDev(fields) : readLiteLlm(fields)
  if (found.size > 0) return found
  throw new Error('It is no price list in the format of LiteLLM or models.dev: it has no price of a model.')
}

function parseList(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('It is no price list: it is not JSON.')
  }
}

/** Returns a price in credits. @param perUsd credits for a US dollar */
export const toCredits = (price: Rate, perUsd: Rate): Rate => divideHalfUp(price * perUsd, ONE_RATE)
