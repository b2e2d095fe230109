/** What a call of the playground costs, while it runs and afterwards, by the gateway's own rules. */
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import { type Credits, parseRate, type Rate } from '../../../../schemas/money.ts'
import { NO_USAGE, type TokenPrice, tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { estimateOutputTokens, estimatePromptTokens } from '../../../../src/core/pricing/text-tokens.ts'
import type { Answer } from './answer.ts'

export type PublicPricing = NonNullable<PublicModel['pricing']>

const rate = (text: string | null): Rate | undefined => (text === null ? undefined : parseRate(text))

/** Returns the price that the catalogue shows; null where it is not by tokens. */
export const priceOf = (pricing: PublicPricing): TokenPrice | null =>
  tokenPrice({
    unit: pricing.unit,
    input: rate(pricing.input),
    output: rate(pricing.output),
    cached_input: rate(pricing.cached_input),
    cache_write: rate(pricing.cache_write),
    server_tool_call: rate(pricing.server_tool_call),
    discount: rate(pricing.discount),
    discount_until: pricing.discount_until ?? undefined,
    pixel_tiers: [],
    tiers: pricing.tiers.map((tier) => ({
      from_prompt_tokens: tier.from_prompt_tokens,
      input: parseRate(tier.input),
      cached_input: parseRate(tier.cached_input),
      cache_write: parseRate(tier.cache_write),
      output: parseRate(tier.output),
    })),
  })

export interface Prompt {
  /** Bytes of the JSON of the messages and tools, without pictures. */
  readonly bytes: number
  /** Bytes of UTF-8 characters behind the first of each. */
  readonly laterBytes: number
}

const encoder = new TextEncoder()

const withoutPictures = (key: string, value: unknown) => (key === 'image_url' ? undefined : value)

/** Measures the texts of a request, as the gateway counts them. */
export function promptOf(body: object): Prompt {
  const { messages, tools } = body as { messages: unknown; tools?: unknown }
  const text = JSON.stringify(messages, withoutPictures) + (tools === undefined ? '' : JSON.stringify(tools))
  const bytes = encoder.encode(text)
  return { bytes: bytes.length, laterBytes: bytes.filter((byte) => (byte & 0xc0) === 0x80).length }
}

export interface Cost {
  readonly credits: Credits
  readonly promptTokens: number
  readonly outputTokens: number
  /** Whether the provider has not reported its counts yet: they are estimated from the length of the texts. */
  readonly isEstimate: boolean
}

/** Returns what the call costs so far. @param now epoch milliseconds */
export function costOf(price: TokenPrice, prompt: Prompt, answer: Answer, now: number): Cost {
  const usage = answer.usage ?? {
    ...NO_USAGE,
    prompt: estimatePromptTokens(prompt.bytes, prompt.laterBytes),
    output: estimateOutputTokens(answer.characters),
  }
  return {
    credits: tokenCharge(price, usage, now),
    promptTokens: usage.prompt,
    outputTokens: usage.output,
    isEstimate: answer.usage === null,
  }
}
