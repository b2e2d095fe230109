/** Explains a charge line by line: tokens x price = amount, exact to the last digit. */
import type { CallDetail, StoredCounts, StoredModelCharge } from '../../../schemas/call-log/call-detail.ts'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import {
  ONE_RATE,
  printCredits,
  printRate,
  printScaled,
  RATE_DECIMALS,
  type Rate,
} from '../../../schemas/money.ts'
import { type ChargedItem, listChargedItems } from '../pricing/charged-items.ts'
import { type PriceTerms, readPriceTerms } from '../pricing/terms.ts'
import { keepExtra, type TokenUsage } from '../pricing/usage.ts'
import type { Fact } from './detail-items.ts'

const MILLION_DECIMALS = 6

/** Returns the factors on a line. Tools have a discount of their own. */
const listFactors = ({ per }: ChargedItem, { discount, toolDiscount, serviceTier }: PriceTerms): Rate[] =>
  [per === 'each' ? toolDiscount : discount, serviceTier?.factor ?? ONE_RATE].filter(
    (factor) => factor !== ONE_RATE,
  )

/** Returns a line. Only the sum of the lines is rounded, to the cost. */
function printLine(item: ChargedItem, terms: PriceTerms): string {
  const { count, price, per } = item
  const factors = listFactors(item, terms)
  const decimals = (1 + factors.length) * RATE_DECIMALS + (per === 'million' ? MILLION_DECIMALS : 0)
  const amount = factors.reduce((product, factor) => product * factor, BigInt(count) * price)
  const times = factors.map((factor) => ` x ${printRate(factor)}`).join('')
  const priced = per === 'million' ? `tokens x ${printRate(price)} per 1M` : `calls x ${printRate(price)}`
  return `${count} ${priced}${times} = ${printScaled(amount, decimals)}`
}

type Counted = Pick<CallWithDetail, Exclude<keyof StoredModelCharge & keyof CallWithDetail, 'model' | 'cost'>>

function readUsage(call: Counted, counts: StoredCounts = {}): TokenUsage {
  return {
    prompt: call.input_tokens,
    cached: call.cached_tokens,
    cacheWrite: call.cache_write_tokens,
    output: call.output_tokens,
    reasoning: call.reasoning_tokens,
    serverToolCalls: call.server_tool_calls,
    ...keepExtra({
      cacheWrite1h: counts.cache_write_1h ?? 0,
      inputAudio: counts.input_audio ?? 0,
      inputImage: counts.input_image ?? 0,
      outputAudio: counts.output_audio ?? 0,
      outputImage: counts.output_image ?? 0,
      tools: counts.server_tools ?? {},
    }),
  }
}

function printTokenLines(usage: TokenUsage, terms: PriceTerms): Fact[] {
  const { discount, serviceTier, minimum, fromPromptTokens } = terms
  return [
    ['price_tier', fromPromptTokens === 0 ? undefined : `prompts of ${fromPromptTokens} tokens or more`],
    ['discount', discount === ONE_RATE ? undefined : `x ${printRate(discount)}`],
    [
      'price_service_tier',
      serviceTier === null ? undefined : `${serviceTier.name}: x ${printRate(serviceTier.factor)}`,
    ],
    ...listChargedItems(usage, terms).map((item): Fact => [`charge_${item.name}`, printLine(item, terms)]),
    ['charge_minimum', minimum === 0n ? undefined : `${printCredits(minimum)} at least`],
  ]
}

/** Returns the lines of the charge for one of several models: their sum is rounded, and then added to the others. */
function printModelLines(charged: StoredModelCharge): Fact[] {
  const { model, priced_as: pricedAs, counts, prices, cost } = charged
  const terms = readPriceTerms(prices)
  const lines = terms === null ? [] : printTokenLines(readUsage(charged, counts), terms)
  const name = pricedAs === undefined ? model : `${model}, at the price of ${pricedAs}`
  return [
    ...lines.map(([line, value]): Fact => [`${line} (${model})`, value]),
    [`charge (${name})`, printCredits(BigInt(cost))],
  ]
}

/** Returns the lines of a charge; only the counts where its prices are unknown. */
export function chargeLines(
  call: CallWithDetail,
  { prices, charge, counts, models = [] }: CallDetail,
): Fact[] {
  const terms = prices === undefined ? null : readPriceTerms(prices)
  const units = call.unit_type === null || call.unit_count === null ? undefined : call.unit_count
  return [
    ['unit_type', call.unit_type ?? undefined],
    ['unit_count', units],
    ['charge', charge],
    ...(terms === null ? [] : printTokenLines(readUsage(call, counts), terms)),
    ...models.flatMap(printModelLines),
  ]
}
