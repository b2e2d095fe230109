/** Computes what a call of the playground costs, during and after it, by the gateway's own rules. */
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import type { PricingFields } from '../../../../schemas/config/catalog.ts'
import { type Credits, parseCredits, parseRate, type Rate } from '../../../../schemas/money.ts'
import { type TokenPrice, tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { estimateOutputTokens, estimatePromptTokens } from '../../../../src/core/pricing/text-tokens.ts'
import { NO_USAGE } from '../../../../src/core/pricing/usage.ts'
import type { Answer } from './answer.ts'

type PublicPricing = NonNullable<PublicModel['pricing']>

const readRate = (text: string | null): Rate | undefined => (text === null ? undefined : parseRate(text))

type PublicPrices = Omit<PublicPricing, 'unit' | 'changes'>
type PublicKinds = Pick<
  PublicPrices,
  Exclude<keyof PublicPrices['tiers'][number], `from_${string}` | 'input' | 'output'>
>

const readRates = (prices: Readonly<Record<string, string>> | null) =>
  prices === null
    ? undefined
    : Object.fromEntries(Object.entries(prices).map(([name, text]) => [name, parseRate(text)]))

const readKinds = (prices: PublicKinds) => ({
  cached_input: readRate(prices.cached_input),
  cache_write: readRate(prices.cache_write),
  cache_write_1h: readRate(prices.cache_write_1h),
  reasoning: readRate(prices.reasoning),
  input_audio: readRate(prices.input_audio),
  output_audio: readRate(prices.output_audio),
  input_image: readRate(prices.input_image),
  output_image: readRate(prices.output_image),
})

const readPrices = (prices: PublicPrices): PricingFields => ({
  input: readRate(prices.input),
  output: readRate(prices.output),
  ...readKinds(prices),
  server_tool_call: readRate(prices.server_tool_call),
  server_tools: readRates(prices.server_tools),
  service_tiers: readRates(prices.service_tiers),
  minimum: prices.minimum === null ? undefined : parseCredits(prices.minimum),
  discount: readRate(prices.discount),
  discount_server_tools: prices.discount_server_tools,
  discount_until: prices.discount_until ?? undefined,
  pixel_tiers: [],
  tiers: prices.tiers.map(({ from_prompt_tokens, input, output, ...kinds }) => ({
    from_prompt_tokens,
    input: parseRate(input),
    output: parseRate(output),
    ...readKinds(kinds),
  })),
})

/** Returns the price that the catalog shows; null if it is not per token. */
export const readPrice = (pricing: PublicPricing): TokenPrice | null =>
  tokenPrice({
    unit: pricing.unit,
    ...readPrices(pricing),
    changes: pricing.changes.map(({ from, ...prices }) => ({ from, ...readPrices(prices) })),
  })

interface Prompt {
  /** Bytes of the messages and tools as JSON, without pictures. */
  readonly bytes: number
  /** Bytes of UTF-8 characters after the first byte of each. */
  readonly laterBytes: number
}

const encoder = new TextEncoder()

const dropPictures = (key: string, value: unknown) => (key === 'image_url' ? undefined : value)

/** Measures the texts of a request, as the gateway counts them. */
export function measurePrompt(body: object): Prompt {
  const { messages, tools } = body as { messages: unknown; tools?: unknown }
  const text = JSON.stringify(messages, dropPictures) + (tools === undefined ? '' : JSON.stringify(tools))
  const bytes = encoder.encode(text)
  return { bytes: bytes.length, laterBytes: bytes.filter((byte) => (byte & 0xc0) === 0x80).length }
}

interface Cost {
  readonly credits: Credits
  readonly promptTokens: number
  readonly outputTokens: number
  /** True until the provider reports its counts: they are estimated from the length of the texts. */
  readonly isEstimate: boolean
}

/** Returns what the call costs so far. @param now epoch milliseconds */
export function computeCost(price: TokenPrice, prompt: Prompt, answer: Answer, now: number): Cost {
  const usage = answer.usage ?? {
    ...NO_USAGE,
    prompt: estimatePromptTokens(prompt.bytes, prompt.laterBytes),
    output: estimateOutputTokens(answer.characters),
  }
  return {
    credits: tokenCharge(price, usage, now, answer.serviceTier),
    promptTokens: usage.prompt,
    outputTokens: usage.output,
    isEstimate: answer.usage === null,
  }
}

/** Returns the cost of a call that may have failed; null if no answer began, which costs nothing. */
export const computeCostAfter = (
  error: Error | null,
  ...[price, prompt, answer, now]: Parameters<typeof computeCost>
): Cost | null =>
  error !== null && answer.characters === 0 && answer.usage === null
    ? null
    : computeCost(price, prompt, answer, now)
