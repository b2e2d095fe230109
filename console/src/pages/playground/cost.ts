/** What a call of the playground costs, while it runs and afterwards, by the gateway's own rules. */
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import type { PricingFields } from '../../../../schemas/config/catalog.ts'
import { type Credits, parseCredits, parseRate, type Rate } from '../../../../schemas/money.ts'
import { type TokenPrice, tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { estimateOutputTokens, estimatePromptTokens } from '../../../../src/core/pricing/text-tokens.ts'
import { NO_USAGE } from '../../../../src/core/pricing/usage.ts'
import type { Answer } from './answer.ts'

type PublicPricing = NonNullable<PublicModel['pricing']>

const rate = (text: string | null): Rate | undefined => (text === null ? undefined : parseRate(text))

type PublicPrices = Omit<PublicPricing, 'unit' | 'changes'>
type PublicKinds = Pick<
  PublicPrices,
  Exclude<keyof PublicPrices['tiers'][number], `from_${string}` | 'input' | 'output'>
>

const ratesOf = (prices: Readonly<Record<string, string>> | null) =>
  prices === null
    ? undefined
    : Object.fromEntries(Object.entries(prices).map(([name, text]) => [name, parseRate(text)]))

const kindsOf = (prices: PublicKinds) => ({
  cached_input: rate(prices.cached_input),
  cache_write: rate(prices.cache_write),
  cache_write_1h: rate(prices.cache_write_1h),
  reasoning: rate(prices.reasoning),
  input_audio: rate(prices.input_audio),
  output_audio: rate(prices.output_audio),
  input_image: rate(prices.input_image),
  output_image: rate(prices.output_image),
})

const fieldsOf = (prices: PublicPrices): PricingFields => ({
  input: rate(prices.input),
  output: rate(prices.output),
  ...kindsOf(prices),
  server_tool_call: rate(prices.server_tool_call),
  server_tools: ratesOf(prices.server_tools),
  service_tiers: ratesOf(prices.service_tiers),
  minimum: prices.minimum === null ? undefined : parseCredits(prices.minimum),
  discount: rate(prices.discount),
  discount_server_tools: prices.discount_server_tools,
  discount_until: prices.discount_until ?? undefined,
  pixel_tiers: [],
  tiers: prices.tiers.map(({ from_prompt_tokens, input, output, ...kinds }) => ({
    from_prompt_tokens,
    input: parseRate(input),
    output: parseRate(output),
    ...kindsOf(kinds),
  })),
})

/** Returns the price that the catalog shows; null where it is not by tokens. */
export const priceOf = (pricing: PublicPricing): TokenPrice | null =>
  tokenPrice({
    unit: pricing.unit,
    ...fieldsOf(pricing),
    changes: pricing.changes.map(({ from, ...prices }) => ({ from, ...fieldsOf(prices) })),
  })

interface Prompt {
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

interface Cost {
  readonly credits: Credits
  readonly promptTokens: number
  readonly outputTokens: number
  /** Whether the provider has not reported its counts yet: they are estimated from the length of the texts. */
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

/** Returns the cost of a call that an error may have ended; null where no answer began, which costs nothing. */
export const costAfter = (
  error: Error | null,
  ...[price, prompt, answer, now]: Parameters<typeof computeCost>
): Cost | null =>
  error !== null && answer.characters === 0 && answer.usage === null
    ? null
    : computeCost(price, prompt, answer, now)
