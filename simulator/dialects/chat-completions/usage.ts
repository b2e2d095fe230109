/** Usage in the forms of different providers of the chat-completions dialect. */

import { NO_USAGE, type Usage } from '../../answers/script.ts'
import type { Directives, UsageForm, UsageMode } from '../../directives/grammar.ts'

/** Where a stream reports its usage. */
export type StreamedUsage =
  | 'never'
  | 'own_chunk'
  | 'own_chunk_unasked'
  | 'zero'
  | 'every_chunk'
  | 'finish_chunk'

type UsageDirectives = Pick<Directives, 'usage' | 'usage_form' | 'usage_fault'>

export function toStreamedUsage(
  includeUsage: boolean,
  { usage: mode, usage_form: form }: UsageDirectives,
): StreamedUsage {
  // It comes with the last chunk, in the provider's own field.
  if (form === 'groq' && mode === undefined) return 'finish_chunk'
  if (mode === 'early') return 'every_chunk'
  if (mode === 'with_finish') return 'finish_chunk'
  if (mode === 'always') return includeUsage ? 'own_chunk' : 'own_chunk_unasked'
  if (mode === 'none' || !includeUsage) return 'never'
  return mode === 'zero' ? 'zero' : 'own_chunk'
}

export function wholeUsage(usage: Usage, { usage: mode, ...directives }: UsageDirectives): unknown {
  if (mode === 'none') return undefined
  return wireUsage(mode === ('zero' satisfies UsageMode) ? NO_USAGE : usage, directives)
}

/** Returns usage in the form of a provider, with a fault if the directives want one. */
export function wireUsage(usage: Usage, { usage_form: form, usage_fault }: UsageDirectives): unknown {
  const wire = (form === undefined ? openai : FORMS[form])(usage)
  if (usage_fault === 'negative') return { ...wire, prompt_tokens: -usage.prompt - 1 }
  if (usage_fault === 'cached_above')
    return { ...wire, prompt_tokens_details: { cached_tokens: usage.prompt + 1 } }
  return wire
}

/** Returns lower counts than those reported before. */
export const fallen = (usage: Usage): Usage => ({
  ...usage,
  prompt: Math.ceil(usage.prompt / 2),
  completion: Math.ceil(usage.completion / 2),
})

type Wire = Record<string, unknown>

const toCounts = ({ prompt, completion }: Usage): Wire => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

/** Counts that few providers report are only there if they are not 0. */
const openai = (usage: Usage): Wire => ({
  ...toCounts(usage),
  prompt_tokens_details: {
    cached_tokens: usage.cached,
    audio_tokens: usage.inputAudio,
    ...(usage.inputImage > 0 ? { image_tokens: usage.inputImage } : {}),
    ...(usage.cacheWrite > 0 ? { cache_write_tokens: usage.cacheWrite } : {}),
  },
  completion_tokens_details: {
    reasoning_tokens: usage.reasoning,
    audio_tokens: usage.outputAudio,
    ...(usage.outputImage > 0 ? { image_tokens: usage.outputImage } : {}),
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
  ...(usage.searches > 0 ? { server_tool_use: { web_search_requests: usage.searches } } : {}),
})

const FORMS: Readonly<Record<UsageForm, (usage: Usage) => Wire>> = {
  groq: openai,
  deepseek: (usage) => ({
    ...toCounts(usage),
    prompt_cache_hit_tokens: usage.cached,
    prompt_cache_miss_tokens: usage.prompt - usage.cached,
    ...(usage.reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: usage.reasoning } } : {}),
  }),
  xai: (usage) => ({
    ...toCounts(usage),
    completion_tokens: usage.completion - usage.reasoning,
    prompt_tokens_details: {
      text_tokens: usage.prompt,
      audio_tokens: 0,
      image_tokens: 0,
      cached_tokens: usage.cached,
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning, audio_tokens: 0 },
    num_sources_used: usage.searches,
    cost_in_usd_ticks: 100 * (usage.prompt + usage.completion),
  }),
}
