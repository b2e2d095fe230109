/**
 * The prices of a charge, as JSON that is kept with the call: the catalog may have changed by the time it is read.
 * `schemas/call-log/call-detail.ts` has its fields.
 */
import type { StoredPrices } from '../../../schemas/call-log/call-detail.ts'
import type { PricingFields, ServerTool } from '../../../schemas/config/catalog.ts'
import {
  type Credits,
  ONE_RATE,
  parseCredits,
  parseRate,
  printCredits,
  printRate,
  type Rate,
} from '../../../schemas/money.ts'

/** Prices of 1M tokens each, by kind. */
export interface KindRates {
  readonly input: Rate
  readonly cached: Rate
  readonly cacheWrite: Rate
  readonly cacheWrite1h: Rate
  readonly output: Rate
  readonly reasoning: Rate
  readonly inputAudio: Rate
  readonly outputAudio: Rate
  readonly inputImage: Rate
  readonly outputImage: Rate
}

export interface PriceTerms extends KindRates {
  readonly serverToolCall: Rate
  /** Prices of tools that have their own. */
  readonly serverTools: Readonly<Partial<Record<ServerTool, Rate>>>
  /** A factor on the prices of tokens. */
  readonly discount: Rate
  /** The same on the prices of tools. */
  readonly toolDiscount: Rate
  /** The service tier by which the upstream served the call, and its factor on everything; null for the usual one. */
  readonly serviceTier: { readonly name: string; readonly factor: Rate } | null
  /** The least that a call costs. */
  readonly minimum: Credits
  readonly fromPromptTokens: number
}

/** The prices of kinds as a configuration has them: most may be absent. */
export type KindFields = Omit<PricingFields['tiers'][number], 'from_prompt_tokens'>

type CacheWrites = Pick<KindFields, 'cache_write' | 'cache_write_1h'>

/** Returns whether writing a cache has a price of its own: such a family bills what is read from it at a tenth. */
export const pricesCacheWrites = ({ cache_write, cache_write_1h }: CacheWrites): boolean =>
  cache_write !== undefined || cache_write_1h !== undefined

/** Part of the input price that a cache hit costs in a family with cache writes. */
const CACHE_HIT_PART = 10n
export const cacheHitRate = (input: Rate): Rate => input / CACHE_HIT_PART

/**
 * Returns the price of each kind of tokens: its own, or the one that stands for it.
 * @param writesCache the model's family bills cache writes
 */
export const kindRates = (fields: KindFields, writesCache = pricesCacheWrites(fields)): KindRates => ({
  input: fields.input,
  cached: fields.cached_input ?? (writesCache ? cacheHitRate(fields.input) : fields.input),
  cacheWrite: fields.cache_write ?? (fields.input * 5n) / 4n,
  cacheWrite1h: fields.cache_write_1h ?? fields.input * 2n,
  output: fields.output,
  reasoning: fields.reasoning ?? fields.output,
  inputAudio: fields.input_audio ?? fields.input,
  outputAudio: fields.output_audio ?? fields.output,
  inputImage: fields.input_image ?? fields.input,
  outputImage: fields.output_image ?? fields.output,
})

export function printPriceTerms(terms: PriceTerms): string {
  const { input, output, serverToolCall, serverTools, serviceTier, minimum, fromPromptTokens } = terms
  const { discount, toolDiscount } = terms
  const usual = kindRates({ input, output })
  const tools = Object.entries(serverTools).map(([name, rate]) => [name, printRate(rate)] as const)
  const stored: StoredPrices = {
    input: printRate(input),
    cached_input: printRate(terms.cached),
    cache_write: printRate(terms.cacheWrite),
    output: printRate(output),
    ...(terms.cacheWrite1h !== usual.cacheWrite1h && { cache_write_1h: printRate(terms.cacheWrite1h) }),
    ...(terms.reasoning !== output && { reasoning: printRate(terms.reasoning) }),
    ...(terms.inputAudio !== input && { input_audio: printRate(terms.inputAudio) }),
    ...(terms.outputAudio !== output && { output_audio: printRate(terms.outputAudio) }),
    ...(terms.inputImage !== input && { input_image: printRate(terms.inputImage) }),
    ...(terms.outputImage !== output && { output_image: printRate(terms.outputImage) }),
    ...(serverToolCall !== 0n && { server_tool_call: printRate(serverToolCall) }),
    ...(tools.length > 0 && { server_tools: Object.fromEntries(tools) }),
    ...(discount !== ONE_RATE && { discount: printRate(discount) }),
    ...(toolDiscount !== discount && { tool_discount: printRate(toolDiscount) }),
    ...(serviceTier !== null && {
      service_tier: serviceTier.name,
      service_tier_factor: printRate(serviceTier.factor),
    }),
    ...(minimum !== 0n && { minimum: printCredits(minimum) }),
    ...(fromPromptTokens !== 0 && { from_prompt_tokens: fromPromptTokens }),
  }
  return JSON.stringify(stored)
}

const optionalRate = (text: string | undefined): Rate | undefined =>
  text === undefined ? undefined : parseRate(text)

/** Returns null for prices that no catalog can have. */
export function readPriceTerms(stored: StoredPrices): PriceTerms | null {
  try {
    const tier = stored.service_tier
    const tools = Object.entries(stored.server_tools ?? {}).map(
      ([name, rate]) => [name, parseRate(rate)] as const,
    )
    return {
      ...kindRates({
        input: parseRate(stored.input),
        output: parseRate(stored.output),
        cached_input: parseRate(stored.cached_input),
        cache_write: parseRate(stored.cache_write),
        cache_write_1h: optionalRate(stored.cache_write_1h),
        reasoning: optionalRate(stored.reasoning),
        input_audio: optionalRate(stored.input_audio),
        output_audio: optionalRate(stored.output_audio),
        input_image: optionalRate(stored.input_image),
        output_image: optionalRate(stored.output_image),
      }),
      serverToolCall: parseRate(stored.server_tool_call ?? '0'),
      serverTools: Object.fromEntries(tools),
      discount: parseRate(stored.discount ?? '1'),
      toolDiscount: parseRate(stored.tool_discount ?? stored.discount ?? '1'),
      serviceTier:
        tier === undefined ? null : { name: tier, factor: parseRate(stored.service_tier_factor ?? '1') },
      minimum: parseCredits(stored.minimum ?? '0'),
      fromPromptTokens: stored.from_prompt_tokens ?? 0,
    }
  } catch {
    return null
  }
}
