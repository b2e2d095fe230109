/**
 * The chat-completions client contract. Unknown fields are let through: on native paths they belong to the
 * upstream. Source: specification, "POST /v1/chat/completions".
 */
import { z } from 'zod'

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]).optional(),
})

const tokenLimit = z.int().min(1).max(100_000_000)

export const MAX_CHOICES = 128

export const chatCompletionsRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  max_tokens: tokenLimit.nullish(),
  max_completion_tokens: tokenLimit.nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  n: z.int().min(1).max(MAX_CHOICES).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]).nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
})
export type ChatCompletionsRequest = z.infer<typeof chatCompletionsRequest>

/** Upstream usage, read loosely: a provider may leave out any of it. */
export const chatCompletionsUsage = z.looseObject({
  prompt_tokens: z.number().nullish(),
  completion_tokens: z.number().nullish(),
  prompt_tokens_details: z
    .looseObject({ cached_tokens: z.number().nullish(), cache_write_tokens: z.number().nullish() })
    .nullish(),
  completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullish() }).nullish(),
})
