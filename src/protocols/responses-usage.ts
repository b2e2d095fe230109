/** Usage as the responses protocol reports it. Source: specification, "POST /v1/responses"; failures, rows 8 and 12. */
import { responsesUsage } from '../../schemas/responses.ts'
import { MAX_REPORTED_TOKENS, type TokenUsage } from '../core/pricing.ts'

const isCredible = (tokens: number): boolean => tokens >= 0 && tokens <= MAX_REPORTED_TOKENS

const count = (value: number | null | undefined): number =>
  value == null || !(value >= 0) ? 0 : Math.floor(Math.min(value, MAX_REPORTED_TOKENS))

/** Null where none was reported: a count that is absent is not a zero. `input_tokens` includes the cached part. */
export function readResponsesUsage(value: unknown): TokenUsage | null {
  const parsed = responsesUsage.safeParse(value)
  if (!parsed.success) return null
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = parsed.data
  if (input_tokens == null || output_tokens == null) return null
  if (!isCredible(input_tokens) || !isCredible(output_tokens)) return null
  const prompt = count(input_tokens)
  const cached = Math.min(prompt, count(input_tokens_details?.cached_tokens))
  const output = count(output_tokens)
  return {
    prompt,
    cached,
    cacheWrite: Math.min(prompt - cached, count(input_tokens_details?.cache_write_tokens)),
    output,
    reasoning: Math.min(output, count(output_tokens_details?.reasoning_tokens)),
    serverToolCalls: 0,
  }
}
