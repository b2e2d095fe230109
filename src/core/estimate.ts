/**
 * The pre-charge estimate and the stand-in for usage that an upstream did not report.
 * Source: specification, "Balance and billing", 3; decisions, "Chat".
 */
import { ESTIMATE_OUTPUT_CAP_TOKENS, type ModelEntry } from '../../schemas/catalog.ts'
import { NO_USAGE, type TokenUsage } from './pricing.ts'

/** A token is taken for four bytes of the prompt's JSON. */
const BYTES_PER_TOKEN = 4
/** And for four characters of what the model said. */
const CHARACTERS_PER_TOKEN = 4

export const estimateInputTokens = (jsonBytes: number): number => Math.ceil(jsonBytes / BYTES_PER_TOKEN)

export const estimateOutputTokens = (characters: number): number =>
  Math.ceil(characters / CHARACTERS_PER_TOKEN)

/** What the output may come to: the explicit limit in full, else min(the model's default, 32768). */
export function outputAllowance(model: ModelEntry, explicitLimit: number | null): number {
  if (explicitLimit !== null) return explicitLimit
  const usual = model.default_max_tokens ?? model.max_output_tokens ?? ESTIMATE_OUTPUT_CAP_TOKENS
  return Math.min(usual, ESTIMATE_OUTPUT_CAP_TOKENS)
}

/** The worst case that admission compares with the wallet. `choices` is the request's `n`. */
export function worstCase(
  model: ModelEntry,
  promptJsonBytes: number,
  explicitLimit: number | null,
  choices: number,
): TokenUsage {
  return {
    ...NO_USAGE,
    prompt: estimateInputTokens(promptJsonBytes),
    output: outputAllowance(model, explicitLimit) * choices,
  }
}
