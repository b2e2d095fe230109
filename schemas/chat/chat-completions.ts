/**
 * The chat-completions client contract. Unknown fields are let through: on native paths they belong to the
 * upstream. See docs/api-rules.md, "Chat protocols".
 */
import { z } from 'zod'

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]).optional(),
})

const tokenLimit = z.int().min(1).max(100_000_000)

export const MAX_CHOICES = 128

/** These fields decide how a stream is metered, so unknown ones are refused. */
export const streamOptions = z.strictObject({
  include_usage: z.boolean().nullish().describe('true: a last chunk carries the token counts.'),
  include_obfuscation: z.boolean().nullish().describe('Goes to the upstream as it is.'),
})

export const chatCompletionsRequest = z.looseObject({
  model: z.string().min(1).describe('Model id or alias.'),
  messages: z.array(message).min(1).describe('The conversation so far.'),
  stream: z.boolean().nullish().describe('true: the answer comes as server-sent events, ended by [DONE].'),
  max_tokens: tokenLimit.nullish().describe('Cap on generated tokens.'),
  max_completion_tokens: tokenLimit.nullish().describe('The same under its newer name.'),
  temperature: z.number().min(0).max(2).nullish(),
  n: z.int().min(1).max(MAX_CHOICES).nullish().describe('How many answers to generate.'),
  tools: z
    .array(z.looseObject({ type: z.string() }))
    .nullish()
    .describe('Function tools, or the built-in web_search and image_generation, which need stream.'),
  web_search_options: z
    .looseObject({})
    .nullish()
    .describe('The built-in web_search by its options: {} turns it on.'),
  tool_choice: z
    .union([z.string(), z.looseObject({ type: z.string() })])
    .nullish()
    .describe('auto, none, required, or an object that selects a function.'),
  stream_options: streamOptions.nullish(),
  response_format: z
    .looseObject({ type: z.string() })
    .nullish()
    .describe('{type: json_object} makes the answer JSON.'),
  usage: z
    .looseObject({ include: z.boolean().nullish() })
    .nullish()
    .describe('{include: true} adds `cost`, the charge in credits, to the usage of the answer.'),
})
export type ChatCompletionsRequest = z.infer<typeof chatCompletionsRequest>
