/**
 * The messages client contract. Unknown fields are let through: they belong to the upstream.
 * See docs/api-rules.md, "Chat protocols".
 */
import { z } from 'zod'

const block = z.looseObject({ type: z.string().min(1) })

const content = z.union([z.string(), z.array(block)])

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['user', 'assistant']), content }),
  // One that only sets the effort of the answer has no content.
  z.looseObject({ role: z.literal('system'), content: content.nullish() }),
])

const tokenLimit = z.int().min(1).max(100_000_000)

/** A tool of the client's own, or one in the vendor's own words, such as `web_search_20250305`. */
const tool = z
  .looseObject({
    type: z.string().nullish(),
    name: z.string().min(1).nullish(),
    description: z.string().nullish(),
    input_schema: z.looseObject({}).nullish(),
  })
  .superRefine((given, context) => {
    if (given.type != null && given.type !== 'custom') return
    for (const field of ['name', 'input_schema'] as const)
      if (given[field] == null) context.addIssue({ code: 'custom', path: [field], message: 'it is missing' })
  })

export const messagesRequest = z.looseObject({
  model: z.string().min(1).describe('Model id or alias.'),
  max_tokens: tokenLimit.describe('Cap on generated tokens.'),
  messages: z.array(message).min(1).describe('The conversation so far.'),
  system: z
    .union([z.string(), z.array(block)])
    .nullish()
    .describe('Top-level system prompt.'),
  stream: z.boolean().nullish().describe('true: the answer comes as named server-sent events.'),
  temperature: z.number().nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .discriminatedUnion('type', [
      z.looseObject({ type: z.literal('auto') }),
      z.looseObject({ type: z.literal('any') }),
      z.looseObject({ type: z.literal('none') }),
      z.looseObject({ type: z.literal('tool'), name: z.string().min(1) }),
    ])
    .nullish(),
})

/** `POST /v1/messages/count_tokens`: the same, but nothing is generated. */
export const countTokensRequest = messagesRequest.extend({ max_tokens: tokenLimit.nullish() })
export type CountTokensRequest = z.infer<typeof countTokensRequest>
