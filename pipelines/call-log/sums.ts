/** Sums of calls: added up, and as answers have them. */
import { printCredits } from '../../schemas/money.ts'
import type { CallSums } from '../../src/clickhouse/summaries/summed-rows.ts'

const NOTHING: CallSums = { requests: 0, cost: 0n, inputTokens: 0, outputTokens: 0, cachedTokens: 0 }

const addSums = (a: CallSums, b: CallSums): CallSums => ({
  requests: a.requests + b.requests,
  cost: a.cost + b.cost,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
})

export const addAllSums = (rows: readonly CallSums[]): CallSums => rows.reduce(addSums, NOTHING)

export const printSums = ({ requests, cost, inputTokens, outputTokens, cachedTokens }: CallSums) => ({
  requests,
  cost: printCredits(cost),
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
})
