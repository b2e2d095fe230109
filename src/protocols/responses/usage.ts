/**
 * Usage as the responses protocol reports it.
 * See docs/api-rules.md, "Responses"; docs/failure-modes.md, "Money", rows 8 and 12.
 */
import { responsesUsage } from '../../../schemas/chat/responses.ts'
import { keepExtra, MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { findFault, partAbove } from '../usage/faults.ts'

const isCredible = (tokens: number | null | undefined): boolean =>
  tokens == null || (tokens >= 0 && tokens <= MAX_REPORTED_TOKENS)

const count = (value: unknown): number =>
  typeof value === 'number' && value >= 0 ? Math.floor(Math.min(value, MAX_REPORTED_TOKENS)) : 0

/**
 * Returns the usage; null where none was reported. `input_tokens` includes the cached part. Tools that the upstream
 * ran are counted by `ServerToolItems`.
 */
export function readResponsesUsage(value: unknown): UsageReport | null {
  const parsed = responsesUsage.safeParse(value)
  if (!parsed.success) return null
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = parsed.data
  if (input_tokens == null && output_tokens == null) return null
  if (!isCredible(input_tokens) || !isCredible(output_tokens)) return null
  const prompt = count(input_tokens)
  const hits = count(input_tokens_details?.cached_tokens)
  const writes = count(input_tokens_details?.cache_write_tokens)
  const cached = Math.min(prompt, hits)
  const thought = count(output_tokens_details?.reasoning_tokens)
  const said = count(output_tokens)
  const isBeside = thought > 0 && parsed.data.total_tokens === prompt + said + thought
  const output = isBeside ? said + thought : said
  const contradiction =
    findFault(value) ||
    (partAbove('cached', hits + writes, 'prompt', prompt) ??
      partAbove('reasoning', thought, 'output', output))
  return {
    prompt: input_tokens == null ? null : prompt,
    cached,
    cacheWrite: Math.min(prompt - cached, writes),
    output: output_tokens == null ? null : output,
    reasoning: Math.min(output, thought),
    serverToolCalls: 0,
    ...keepExtra({
      inputAudio: count(input_tokens_details?.audio_tokens),
      inputImage: count(input_tokens_details?.image_tokens),
      outputAudio: count(output_tokens_details?.audio_tokens),
      outputImage: count(output_tokens_details?.image_tokens),
    }),
    ...(contradiction !== undefined && { contradiction }),
  }
}
