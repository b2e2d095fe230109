/**
 * What a call costs. All arithmetic is on bigints; the one rounding, half up to 1e-8 credit, comes last.
 * Source: specification, "Balance and billing"; decisions, "Names", row "money".
 */
import type { Pricing } from '../../schemas/catalog.ts'
import {
  CREDIT_DECIMALS,
  type Credits,
  divideHalfUp,
  ONE_RATE,
  RATE_DECIMALS,
  type Rate,
} from '../../schemas/money.ts'

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

interface TokenRates {
  readonly fromPromptTokens: number
  readonly input: Rate
  readonly cached: Rate
  readonly cacheWrite: Rate
  readonly output: Rate
}

/** A model's token price, read once when the configuration is taken up. Rates are per 1M tokens. */
export interface TokenPrice {
  /** Highest threshold first; the last one starts at 0. */
  readonly tiers: readonly TokenRates[]
  readonly serverToolCall: Rate
  readonly discount: Rate
  /** Epoch milliseconds; Infinity when the discount has no end. */
  readonly discountUntil: number
}

const PER_TOKENS = 1_000_000n
/** Numerators are rate x tokens x discount: 2 x RATE_DECIMALS places and a million tokens above a credit unit. */
const DENOMINATOR = PER_TOKENS * 10n ** BigInt(2 * RATE_DECIMALS - CREDIT_DECIMALS)

interface RateFields {
  readonly input: Rate
  readonly cached_input?: Rate | undefined
  readonly cache_write?: Rate | undefined
  readonly output: Rate
}

const rates = (from: number, fields: RateFields): TokenRates => ({
  fromPromptTokens: from,
  input: fields.input,
  cached: fields.cached_input ?? fields.input,
  cacheWrite: fields.cache_write ?? (fields.input * 5n) / 4n,
  output: fields.output,
})

/** Null where the model is not priced by tokens. */
export function tokenPrice(pricing: Pricing | undefined): TokenPrice | null {
  if (pricing?.unit !== '1M_tokens') return null
  const { input, output } = pricing
  if (input === undefined || output === undefined) return null
  const base = rates(0, { ...pricing, input, output })
  const above = pricing.tiers.map((tier) => rates(tier.from_prompt_tokens, tier))
  return {
    tiers: [...above, base].sort((a, b) => b.fromPromptTokens - a.fromPromptTokens),
    serverToolCall: pricing.server_tool_call ?? 0n,
    discount: pricing.discount ?? ONE_RATE,
    discountUntil:
      pricing.discount_until === undefined ? Number.POSITIVE_INFINITY : Date.parse(pricing.discount_until),
  }
}

/** The charge for `usage` at the instant `now` (epoch milliseconds). */
export function tokenCharge(price: TokenPrice, usage: TokenUsage, now: number): Credits {
  const tier = price.tiers.find((t) => usage.prompt >= t.fromPromptTokens)!
  const fresh = Math.max(0, usage.prompt - usage.cached - usage.cacheWrite)
  let sum = BigInt(fresh) * tier.input + BigInt(usage.output) * tier.output
  if (usage.cached > 0) sum += BigInt(usage.cached) * tier.cached
  if (usage.cacheWrite > 0) sum += BigInt(usage.cacheWrite) * tier.cacheWrite
  if (usage.serverToolCalls > 0) sum += BigInt(usage.serverToolCalls) * price.serverToolCall * PER_TOKENS
  const discount = now < price.discountUntil ? price.discount : ONE_RATE
  return divideHalfUp(sum * discount, DENOMINATOR)
}
