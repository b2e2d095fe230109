/**
 * The prices under which a call was charged, as text that is kept with the call: the catalogue may say something else
 * by the time someone asks. `12.5 1.25 15.625 100 t2.022 d0.8 f272000` are the prices of 1M tokens of input, of cached
 * input, of cache writes and of output; then, where there are any, the price of a tool's call, the discount as a
 * factor, and the prompt tokens from which this tier holds.
 */
import { ONE_RATE, parseRate, printRate, type Rate } from '../../../schemas/money.ts'

export interface PriceTerms {
  readonly input: Rate
  readonly cached: Rate
  readonly cacheWrite: Rate
  readonly output: Rate
  readonly serverToolCall: Rate
  /** A factor on everything. */
  readonly discount: Rate
  readonly fromPromptTokens: number
}

const TERMS = /^(\S+) (\S+) (\S+) (\S+)(?: t(\S+))?(?: d(\S+))?(?: f(\d+))?$/

export function printPriceTerms(terms: PriceTerms): string {
  const { input, cached, cacheWrite, output, serverToolCall, discount, fromPromptTokens } = terms
  let text = [input, cached, cacheWrite, output].map(printRate).join(' ')
  if (serverToolCall !== 0n) text += ` t${printRate(serverToolCall)}`
  if (discount !== ONE_RATE) text += ` d${printRate(discount)}`
  if (fromPromptTokens !== 0) text += ` f${fromPromptTokens}`
  return text
}

/** Null for what `printPriceTerms` did not print. */
export function parsePriceTerms(text: string): PriceTerms | null {
  const [, input, cached, cacheWrite, output, tool = '0', discount = '1', from = '0'] = TERMS.exec(text) ?? []
  if (input === undefined || cached === undefined || cacheWrite === undefined || output === undefined)
    return null
  try {
    return {
      input: parseRate(input),
      cached: parseRate(cached),
      cacheWrite: parseRate(cacheWrite),
      output: parseRate(output),
      serverToolCall: parseRate(tool),
      discount: parseRate(discount),
      fromPromptTokens: Number(from),
    }
  } catch {
    return null
  }
}
