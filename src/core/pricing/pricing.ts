/**
 * Prices a call by its tokens. All arithmetic is on whole numbers; the one rounding, half up to 1e-8 credit, comes
 * last. See docs/api-rules.md, "Charges".
 */
import type { Pricing } from '../../../schemas/config/catalog.ts'
import {
  CREDIT_DECIMALS,
  type Credits,
  divideHalfUp,
  ONE_RATE,
  RATE_DECIMALS,
  type Rate,
} from '../../../schemas/money.ts'
import { type PriceTerms, printPriceTerms } from './terms.ts'

/** Tokens of one call. `prompt` counts every prompt token; `cached` and `cacheWrite` are parts of it. */
export interface TokenUsage {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  readonly output: number
  /** A part of `output`. */
  readonly reasoning: number
  readonly serverToolCalls: number
}

/** No call has more: a count above it is a fault of the upstream's, and no one is billed by a fault. */
export const MAX_REPORTED_TOKENS = 1_000_000_000

export const NO_USAGE: TokenUsage = {
  prompt: 0,
  cached: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
  serverToolCalls: 0,
}

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
  /** The same in words, for the call log. */
  readonly terms: string
}

interface TokenRates {
  readonly fromPromptTokens: number
  readonly input: Rate
  readonly cached: Rate
  readonly cacheWrite: Rate
  readonly output: Rate
  readonly full: ChargeRule
  readonly discounted: ChargeRule
}

/** A model's token price, read once when the configuration is taken up. Rates are per 1M tokens. */
export interface TokenPrice {
  /** Highest threshold first; the last one starts at 0. */
  readonly tiers: readonly TokenRates[]
  /** Epoch milliseconds; Infinity when the discount has no end. */
  readonly discountUntil: number
}

const PER_TOKENS = 1_000_000n
/** Numerators are rate x tokens x discount: 2 x RATE_DECIMALS places and a million tokens above a credit unit. */
const DENOMINATOR = PER_TOKENS * 10n ** BigInt(2 * RATE_DECIMALS - CREDIT_DECIMALS)

const commonFactor = (a: bigint, b: bigint): bigint => (b === 0n ? a : commonFactor(b, a % b))

function chargeRule(terms: PriceTerms): ChargeRule {
  const { input, cached, cacheWrite, output, serverToolCall, discount } = terms
  const undivided = [input, cached, cacheWrite, output, serverToolCall * PER_TOKENS].map((r) => r * discount)
  const factor = undivided.reduce(commonFactor, DENOMINATOR)
  const values = [...undivided, DENOMINATOR].map((value) => value / factor)
  const isSmall = values.every((value) => value <= Number.MAX_SAFE_INTEGER)
  return {
    exact: unitPrices(values),
    small: isSmall ? unitPrices(values.map(Number)) : null,
    terms: printPriceTerms(terms),
  }
}

const unitPrices = <N extends bigint | number>(values: readonly N[]): UnitPrices<N> => {
  const [fresh, cached, cacheWrite, output, serverToolCall, per] = values as [N, N, N, N, N, N]
  return { fresh, cached, cacheWrite, output, serverToolCall, per }
}

interface RateFields {
  readonly input: Rate
  readonly cached_input?: Rate | undefined
  readonly cache_write?: Rate | undefined
  readonly output: Rate
}

/** Returns the price; null where the model is not priced by tokens. */
export function tokenPrice(pricing: Pricing | undefined): TokenPrice | null {
  if (pricing?.unit !== '1M_tokens') return null
  const { input, output, server_tool_call: serverToolCall = 0n, discount = ONE_RATE } = pricing
  if (input === undefined || output === undefined) return null
  const rates = (fromPromptTokens: number, fields: RateFields): TokenRates => {
    const priced = {
      input: fields.input,
      cached: fields.cached_input ?? fields.input,
      cacheWrite: fields.cache_write ?? (fields.input * 5n) / 4n,
      output: fields.output,
    }
    const terms = { fromPromptTokens, ...priced, serverToolCall, discount: ONE_RATE }
    const full = chargeRule(terms)
    return { fromPromptTokens, ...priced, full, discounted: chargeRule({ ...terms, discount }) }
  }
  const base = rates(0, { ...pricing, input, output })
  const above = pricing.tiers.map((tier) => rates(tier.from_prompt_tokens, tier))
  return {
    tiers: [...above, base].sort((a, b) => b.fromPromptTokens - a.fromPromptTokens),
    discountUntil:
      pricing.discount_until === undefined ? Number.POSITIVE_INFINITY : Date.parse(pricing.discount_until),
  }
}

function ruleFor(price: TokenPrice, promptTokens: number, now: number): ChargeRule {
  let i = 0
  while (promptTokens < price.tiers[i]!.fromPromptTokens) i++
  const tier = price.tiers[i]!
  return now < price.discountUntil ? tier.discounted : tier.full
}

/** Returns the prices of a prompt of this many tokens at the instant `now`, in the form of `printPriceTerms`. */
export const chargeTerms = (price: TokenPrice, promptTokens: number, now: number): string =>
  ruleFor(price, promptTokens, now).terms

/** Returns the charge for `usage` at the instant `now` (epoch milliseconds). */
export function tokenCharge(price: TokenPrice, usage: TokenUsage, now: number): Credits {
  const rule = ruleFor(price, usage.prompt, now)
  return (rule.small && smallCharge(rule.small, usage)) ?? exactCharge(rule.exact, usage)
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
