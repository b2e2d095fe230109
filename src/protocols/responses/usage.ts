/**
 * Usage as the responses protocol reports it.
 * See docs/api-rules.md, "Responses"; docs/failure-modes.md, "Money", rows 8 and 12.
 */
import { responsesUsage } from '../../../schemas/chat/responses.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { extraOf, MAX_REPORTED_TOKENS, type TokenUsage } from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { serverToolOf } from '../request/tools.ts'
import { faultIn, partAbove } from '../usage/faults.ts'

const isCredible = (tokens: number | null | undefined): boolean =>
  tokens == null || (tokens >= 0 && tokens <= MAX_REPORTED_TOKENS)

const count = (value: unknown): number =>
  typeof value === 'number' && value >= 0 ? Math.floor(Math.min(value, MAX_REPORTED_TOKENS)) : 0

const ITEM_ENDING = /_call(_output)?$/
/** The names of two items are no tools'. */
const TOOLS_OF_ITEMS: Readonly<Record<string, ServerTool>> = { shell: 'code_interpreter' }

/** Counts the items of an answer each of which is one call of a tool that the upstream ran. */
export class ServerToolItems {
  calls = 0
  readonly #tools: Partial<Record<ServerTool, number>> = {}

  /** @param type such as `web_search_call` */
  add(type: string): void {
    this.calls++
    const name = type.replace(ITEM_ENDING, '')
    const tool = serverToolOf(name) ?? TOOLS_OF_ITEMS[name]
    if (tool !== undefined) this.#tools[tool] = (this.#tools[tool] ?? 0) + 1
  }

  /** Adds the calls to counts of tokens. */
  addTo<Counts extends Omit<TokenUsage, 'prompt' | 'output'>>(counts: Counts): Counts {
    if (this.calls === 0) return { ...counts, serverToolCalls: 0 }
    return { ...counts, serverToolCalls: this.calls, ...extraOf({ ...counts.extra, tools: this.#tools }) }
  }
}

/**
 * Returns the usage; null where none was reported. `input_tokens` includes the cached part. Tools that the upstream
 * ran are items of the answer, and not counted here.
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
    faultIn(value) ||
    (partAbove('cached', hits + writes, 'prompt', prompt) ??
      partAbove('reasoning', thought, 'output', output))
  return {
    prompt: input_tokens == null ? null : prompt,
    cached,
    cacheWrite: Math.min(prompt - cached, writes),
    output: output_tokens == null ? null : output,
    reasoning: Math.min(output, thought),
    serverToolCalls: 0,
    ...extraOf({
      inputAudio: count(input_tokens_details?.audio_tokens),
      inputImage: count(input_tokens_details?.image_tokens),
      outputAudio: count(output_tokens_details?.audio_tokens),
      outputImage: count(output_tokens_details?.image_tokens),
    }),
    ...(contradiction !== undefined && { contradiction }),
  }
}
