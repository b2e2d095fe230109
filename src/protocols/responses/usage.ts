/**
 * Usage as the responses protocol reports it.
 * See docs/api-rules.md, "Responses"; docs/failure-modes.md, "Money", rows 8 and 12.
 */
import { responsesUsage } from '../../../schemas/chat/responses.ts'
import { MAX_REPORTED_TOKENS } from '../../core/pricing/pricing.ts'
import type { UsageReport } from '../answer/reported-usage.ts'

const isCredible = (tokens: number | null | undefined): boolean =>
  tokens == null || (tokens >= 0 && tokens <= MAX_REPORTED_TOKENS)

const count = (value: number | null | undefined): number =>
  value == null || !(value >= 0) ? 0 : Math.floor(Math.min(value, MAX_REPORTED_TOKENS))

/**
 * Returns the usage; null where none was reported. `input_tokens` includes the cached part. Tools that the upstream
 * ran are not counted.
 */
export function readResponsesUsage(value: unknown): UsageReport | null {
  const parsed = responsesUsage.safeParse(value)
  if (!parsed.success) return null
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = parsed.data
  if (input_tokens == null && output_tokens == null) return null
  if (!isCredible(input_tokens) || !isCredible(output_tokens)) return null
  const prompt = count(input_tokens)
  const cached = Math.min(prompt, count(input_tokens_details?.cached_tokens))
  const output = count(output_tokens)
  return {
    prompt: input_tokens == null ? null : prompt,
    cached,
    cacheWrite: Math.min(prompt - cached, count(input_tokens_details?.cache_write_tokens)),
    output: output_tokens == null ? null : output,
    reasoning: Math.min(output, count(output_tokens_details?.reasoning_tokens)),
    serverToolCalls: 0,
  }
}
