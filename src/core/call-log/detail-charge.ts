/** Explains a charge line by line: tokens x price = amount, exact to the last digit. */
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import { ONE_RATE, printRate, printScaled, RATE_DECIMALS, type Rate } from '../../../schemas/money.ts'
import { type PriceTerms, readPriceTerms } from '../pricing/terms.ts'
import type { Fact } from './detail-items.ts'

const MILLION_DECIMALS = 6

/** Returns a line. Only the sum of the lines is rounded, to the cost. */
function line(count: number, unit: string, price: Rate, per: 'million' | 'each', discount: Rate): string {
  const decimals = 2 * RATE_DECIMALS + (per === 'million' ? MILLION_DECIMALS : 0)
  const amount = printScaled(BigInt(count) * price * discount, decimals)
  const factor = discount === ONE_RATE ? '' : ` x ${printRate(discount)}`
  const priced = per === 'million' ? `${printRate(price)} per 1M` : printRate(price)
  return `${count} ${unit} x ${priced}${factor} = ${amount}`
}

function tokenLines(call: CallWithDetail, terms: PriceTerms): Fact[] {
  const { discount, fromPromptTokens } = terms
  const fresh = Math.max(0, call.input_tokens - call.cached_tokens - call.cache_write_tokens)
  const tokens = (count: number, price: Rate) =>
    count === 0 ? undefined : line(count, 'tokens', price, 'million', discount)
  const calls = call.server_tool_calls
  return [
    ['price_tier', fromPromptTokens === 0 ? undefined : `prompts of ${fromPromptTokens} tokens or more`],
    ['discount', discount === ONE_RATE ? undefined : `x ${printRate(discount)}`],
    ['charge_input', tokens(fresh, terms.input)],
    ['charge_cached_input', tokens(call.cached_tokens, terms.cached)],
    ['charge_cache_write', tokens(call.cache_write_tokens, terms.cacheWrite)],
    ['charge_output', tokens(call.output_tokens, terms.output)],
    [
      'charge_built_in_tools',
      calls === 0 ? undefined : line(calls, 'calls', terms.serverToolCall, 'each', discount),
    ],
  ]
}

/** Returns the lines of a charge; the counts alone where its prices are unknown. */
export function chargeLines(call: CallWithDetail, { prices, charge }: CallDetail): Fact[] {
  const terms = prices === undefined ? null : readPriceTerms(prices)
  const units = call.unit_type === null || call.unit_count === null ? undefined : call.unit_count
  return [
    ['unit_type', call.unit_type ?? undefined],
    ['unit_count', units],
    ['charge', charge],
    ...(terms === null ? [] : tokenLines(call, terms)),
  ]
}
