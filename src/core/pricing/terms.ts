/**
 * The prices of a charge, as JSON that is kept with the call: the catalogue may have changed by the time it is read.
 * `schemas/call-log/call-detail.ts` has its fields.
 */
import type { StoredPrices } from '../../../schemas/call-log/call-detail.ts'
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

export function printPriceTerms(terms: PriceTerms): string {
  const { serverToolCall, discount, fromPromptTokens } = terms
  const stored: StoredPrices = {
    input: printRate(terms.input),
    cached_input: printRate(terms.cached),
    cache_write: printRate(terms.cacheWrite),
    output: printRate(terms.output),
    ...(serverToolCall !== 0n && { server_tool_call: printRate(serverToolCall) }),
    ...(discount !== ONE_RATE && { discount: printRate(discount) }),
    ...(fromPromptTokens !== 0 && { from_prompt_tokens: fromPromptTokens }),
  }
  return JSON.stringify(stored)
}

/** Returns null for prices that no catalogue can have. */
export function readPriceTerms(stored: StoredPrices): PriceTerms | null {
  try {
    return {
      input: parseRate(stored.input),
      cached: parseRate(stored.cached_input),
      cacheWrite: parseRate(stored.cache_write),
      output: parseRate(stored.output),
      serverToolCall: parseRate(stored.server_tool_call ?? '0'),
      discount: parseRate(stored.discount ?? '1'),
      fromPromptTokens: stored.from_prompt_tokens ?? 0,
    }
  } catch {
    return null
  }
}
