/**
 * Prices a call by its tokens. All arithmetic is on whole numbers; the one rounding, half up to 1e-8 credit, comes
 * last. See docs/pricing.md.
 */
import type { Pricing, PricingFields } from '../../../schemas/config/catalog.ts'
import {
  CREDIT_DECIMALS,
  type Credits,
  divideHalfUp,
  ONE_RATE,
  RATE_DECIMALS,
  type Rate,
} from '../../../schemas/money.ts'
import { pricesInOrder } from './changes.ts'
import { listChargedItems } from './charged-items.ts'
import { type KindFields, kindRates, type PriceTerms, pricesCacheWrites, printPriceTerms } from './terms.ts'
import { promptReadAtOnce, type TokenUsage } from './usage.ts'

/**
 * Price of one token, or one call of a tool: units of 1e-8 credit times `per`. The common factors are taken out, so
 * that these are small numbers for nearly every real price.
 */
interface UnitPrices<N extends bigint | number> {
  readonly fresh: N
  readonly cached: N
  readonly cacheWrite: N
  readonly output: N
  readonly serverToolCall: N
  readonly per: N
}

interface ChargeRule {
  readonly exact: UnitPrices<bigint>
  /** The same as numbers; null where one of them is too large for that. */
  readonly small: UnitPrices<number> | null
  readonly terms: PriceTerms
  /** The same in words, for the call log. */
  readonly printed: string
}

interface TokenRates {
  readonly fromPromptTokens: number
  readonly full: ChargeRule
  readonly discounted: ChargeRule
}

/** A model's token price, read once when the configuration is taken up. Rates are per 1M tokens. */
export interface TokenPrice {
  /** Highest threshold first; the last one starts at 0. */
  readonly tiers: readonly TokenRates[]
  /** Epoch milliseconds; Infinity when the discount has no end. */
  readonly discountUntil: number
  /** Counts of a usage without `extra` have the four usual prices, and no charge has a minimum. */
  readonly isPlain: boolean
  /** Factors by service tier; null without any. */
  readonly serviceTiers: ReadonlyMap<string, Rate> | null
  /** The price that replaces this one from an instant on, epoch milliseconds; null without one. */
  readonly next: { readonly from: number; readonly price: TokenPrice } | null
}

const PER_TOKENS = 1_000_000n
/** Numerators are rate x tokens x discount: 2 x RATE_DECIMALS places and a million tokens above a credit unit. */
const DENOMINATOR = PER_TOKENS * 10n ** BigInt(2 * RATE_DECIMALS - CREDIT_DECIMALS)

const commonFactor = (a: bigint, b: bigint): bigint => (b === 0n ? a : commonFactor(b, a % b))

function chargeRule(terms: PriceTerms): ChargeRule {
  const { input, cached, cacheWrite, output, serverToolCall, discount, toolDiscount } = terms
  const tokens = [input, cached, cacheWrite, output].map((rate) => rate * discount)
  const undivided = [...tokens, serverToolCall * PER_TOKENS * toolDiscount]
  const factor = undivided.reduce(commonFactor, DENOMINATOR)
  const values = [...undivided, DENOMINATOR].map((value) => value / factor)
  const isSmall = values.every((value) => value <= Number.MAX_SAFE_INTEGER)
  return {
    exact: unitPrices(values),
    small: isSmall ? unitPrices(values.map(Number)) : null,
    terms,
    printed: printPriceTerms(terms),
  }
}

const unitPrices = <N extends bigint | number>(values: readonly N[]): UnitPrices<N> => {
  const [fresh, cached, cacheWrite, output, serverToolCall, per] = values as [N, N, N, N, N, N]
  return { fresh, cached, cacheWrite, output, serverToolCall, per }
}

/** Returns whether each kind of input and of output costs the same: then the estimate need not know the kinds. */
const isUniform = ({ full: { terms } }: TokenRates): boolean =>
  [terms.inputAudio, terms.inputImage].every((rate) => rate === terms.input) &&
  [terms.reasoning, terms.outputAudio, terms.outputImage].every((rate) => rate === terms.output)

/** Returns the price; null where the model is not priced by tokens. */
export function tokenPrice(pricing: Pricing | undefined): TokenPrice | null {
  if (pricing?.unit !== '1M_tokens') return null
  let next: TokenPrice['next'] = null
  for (const { from, fields } of pricesInOrder(pricing).reverse()) {
    const price = buildPrice(fields, next)
    if (from === null) return price
    if (price !== null) next = { from: Date.parse(from), price }
  }
  return null
}

function buildPrice(pricing: PricingFields, next: TokenPrice['next']): TokenPrice | null {
  // Only embeddings have no output.
  const { input, output = 0n, server_tool_call: serverToolCall = 0n, discount = ONE_RATE } = pricing
  if (input === undefined) return null
  const { server_tools: serverTools = {}, minimum = 0n, service_tiers: factors } = pricing
  const base: KindFields = { ...pricing, input, output }
  const writesCache = [pricing, ...pricing.tiers].some(pricesCacheWrites)
  const toolDiscount = pricing.discount_server_tools === true ? discount : ONE_RATE
  const rates = (fromPromptTokens: number, fields: KindFields): TokenRates => {
    const kinds = kindRates(fields, writesCache)
    const terms = {
      ...{ ...kinds, serverToolCall, serverTools, minimum, fromPromptTokens },
      ...{ discount: ONE_RATE, toolDiscount: ONE_RATE, serviceTier: null },
    }
    const lowered = { ...terms, discount, toolDiscount }
    return { fromPromptTokens, full: chargeRule(terms), discounted: chargeRule(lowered) }
  }
  const tiers = [rates(0, base), ...pricing.tiers.map((tier) => rates(tier.from_prompt_tokens, tier))]
  return {
    tiers: tiers.sort((a, b) => b.fromPromptTokens - a.fromPromptTokens),
    discountUntil:
      pricing.discount_until === undefined ? Number.POSITIVE_INFINITY : Date.parse(pricing.discount_until),
    isPlain: tiers.every(isUniform) && minimum === 0n && Object.keys(serverTools).length === 0,
    serviceTiers: factors === undefined ? null : new Map(Object.entries(factors)),
    next,
  }
}

/** Returns the price that holds at the instant `now` (epoch milliseconds). */
export function priceAt(price: TokenPrice, now: number): TokenPrice {
  let current = price
  while (current.next !== null && now >= current.next.from) current = current.next.price
  return current
}

function ruleFor(price: TokenPrice, promptTokens: number, now: number): ChargeRule {
  let i = 0
  while (promptTokens < price.tiers[i]!.fromPromptTokens) i++
  const tier = price.tiers[i]!
  return now < price.discountUntil ? tier.discounted : tier.full
}

/** Factors of tiers that a price does not name. */
const USUAL_FACTORS: ReadonlyMap<string, Rate> = new Map([['fast', 2n * ONE_RATE]])

/** Returns the factor of a service tier; null for one without, the usual one among them. */
export const findFactor = (price: TokenPrice, serviceTier: string): Rate | null =>
  price.serviceTiers?.get(serviceTier) ?? USUAL_FACTORS.get(serviceTier) ?? null

function inServiceTier(terms: PriceTerms, name: string, factor: Rate | null): PriceTerms {
  return factor === null || factor === ONE_RATE ? terms : { ...terms, serviceTier: { name, factor } }
}

/**
 * Returns the prices of `usage` at the instant `now`, in the form of `printPriceTerms`.
 * @param serviceTier the upstream's word for it; empty where it names none
 */
export function chargeTerms(price: TokenPrice, usage: TokenUsage, now: number, serviceTier = ''): string {
  const current = priceAt(price, now)
  const { terms, printed } = ruleFor(current, promptReadAtOnce(usage), now)
  const factor = findFactor(current, serviceTier)
  return factor === null ? printed : printPriceTerms(inServiceTier(terms, serviceTier, factor))
}

/**
 * Returns the charge for `usage` at the instant `now` (epoch milliseconds).
 * @param serviceTier the upstream's word for it; empty where it names none
 */
export function tokenCharge(price: TokenPrice, usage: TokenUsage, now: number, serviceTier = ''): Credits {
  const current = priceAt(price, now)
  const rule = ruleFor(current, promptReadAtOnce(usage), now)
  const factor = findFactor(current, serviceTier)
  if (current.isPlain && usage.extra === undefined && factor === null)
    return (rule.small && smallCharge(rule.small, usage)) ?? exactCharge(rule.exact, usage)
  return itemCharge(inServiceTier(rule.terms, serviceTier, factor), usage)
}

/** Numerators of items: as above, and times the factor of the service tier. */
const ITEM_DENOMINATOR = DENOMINATOR * 10n ** BigInt(RATE_DECIMALS)

function itemCharge(terms: PriceTerms, usage: TokenUsage): Credits {
  const items = listChargedItems(usage, terms)
  if (items.length === 0) return 0n
  const { discount, toolDiscount, serviceTier, minimum } = terms
  const sum = items.reduce((above, { count, price, per }) => {
    const factor = per === 'each' ? PER_TOKENS * toolDiscount : discount
    return above + BigInt(count) * price * factor
  }, 0n)
  const charge = divideHalfUp(sum * (serviceTier?.factor ?? ONE_RATE), ITEM_DENOMINATOR)
  if (charge < minimum) return minimum
  return charge
}

const freshTokens = (usage: TokenUsage): number => Math.max(0, usage.prompt - usage.cached - usage.cacheWrite)

/**
 * Returns the charge; null where it is too large for numbers. Checking the sum is enough: nothing in it is negative,
 * so with an inexact product or partial sum it would be too large as well.
 */
function smallCharge(prices: UnitPrices<number>, usage: TokenUsage): Credits | null {
  const sum =
    freshTokens(usage) * prices.fresh +
    usage.cached * prices.cached +
    usage.cacheWrite * prices.cacheWrite +
    usage.output * prices.output +
    usage.serverToolCalls * prices.serverToolCall
  if (!Number.isSafeInteger(sum)) return null
  const rest = sum % prices.per
  const whole = (sum - rest) / prices.per
  return BigInt(rest >= prices.per - rest ? whole + 1 : whole)
}

function exactCharge(prices: UnitPrices<bigint>, usage: TokenUsage): Credits {
  const sum =
    BigInt(freshTokens(usage)) * prices.fresh +
    BigInt(usage.cached) * prices.cached +
    BigInt(usage.cacheWrite) * prices.cacheWrite +
    BigInt(usage.output) * prices.output +
    BigInt(usage.serverToolCalls) * prices.serverToolCall
  return divideHalfUp(sum, prices.per)
}
