/**
 * The responses client contract. Unknown fields are let through: on native paths they belong to the upstream.
 * See docs/api-rules.md, "Responses".
 */
import { z } from 'zod'
import { callbackField } from '../media/fields.ts'
import { streamOptions } from './chat-completions.ts'

/** A part of a message, such as `{type: input_text, text}` or `{type: input_image, image_url, detail}`. */
const part = z.looseObject({ type: z.string() })

/** A message, or an item of another type: a call of an earlier turn, its output, a reasoning item. */
export const responsesItem = z
  .looseObject({
    type: z.string().optional(),
    role: z.enum(['user', 'assistant', 'system', 'developer']).optional(),
    content: z.union([z.string(), z.array(part)]).nullish(),
  })
  .refine((item) => item.type !== undefined || item.role !== undefined, 'it has neither a role nor a type')
  .refine(
    ({ type, role, content }) => (type ?? 'message') !== 'message' || (role != null && content != null),
    'a message needs role and content',
  )
  .meta({
    anyOf: [
      { properties: { type: { type: 'string' } }, required: ['type'] },
      {
        properties: { role: { type: 'string' }, content: { type: ['string', 'array'] } },
        required: ['role', 'content'],
      },
    ],
  })

const tool = z
  .looseObject({
    type: z.string(),
    name: z.string().min(1).nullish(),
    description: z.string().nullish(),
    parameters: z.looseObject({}).nullish(),
  })
  .refine(({ type, name }) => type !== 'function' || name != null, 'a function needs a name')

const number = z.number().nullish()

const storedId = z.string().min(1).max(200)

const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export const responsesRequest = z.looseObject({
  model: z.string().min(1).describe('Model id or alias.'),
  input: z
    .union([z.string().min(1), z.array(responsesItem).min(1)])
    .describe('The whole conversation, as messages and items. Upstreams may refuse a plain string.'),
  instructions: z.string().nullish().describe('Top-level system prompt. Upstreams may require it.'),
  stream: z.boolean().nullish().describe('true: the answer comes as server-sent events.'),
  stream_options: streamOptions.nullish(),
  max_output_tokens: z
    .int()
    .min(1)
    .max(100_000_000)
    .nullish()
    .describe('Cap on generated tokens, reasoning included.'),
  reasoning: z.looseObject({ effort: z.enum(REASONING_EFFORTS).nullish() }).nullish(),
  temperature: number,
  top_p: number,
  frequency_penalty: number,
  presence_penalty: number,
  tools: z.array(tool).nullish().describe('Function tools, or the built-in web_search and image_generation.'),
  tool_choice: z
    .union([z.string(), z.looseObject({ type: z.string() })])
    .nullish()
    .describe('auto, none, or an object that selects a function by name.'),
  parallel_tool_calls: z.boolean().nullish().describe('Default true.'),
  previous_response_id: storedId
    .nullish()
    .describe('Goes on with an earlier response of the account, where the channel that made it keeps it.'),
  store: z
    .boolean()
    .nullish()
    .describe('false: the response is not kept, and cannot be continued. Default true.'),
  conversation: z
    .union(
      [storedId, z.looseObject({ id: storedId })],
      'it must be the id of a conversation, or an object with it',
    )
    .nullish()
    .describe(
      'A conversation of the account, at whose channel the call is made; the answer becomes a part of it.',
    ),
  background: z
    .boolean()
    .nullish()
    .describe(
      'true: answered at once, and made by the upstream in the background; GET /v1/responses/{id} tells how far it is.',
    ),
  ...callbackField,
})
export type ResponsesRequest = z.infer<typeof responsesRequest>

/** Upstream usage, read loosely: a provider may leave out any of it. */
export const responsesUsage = z.looseObject({
  input_tokens: z.number().nullish(),
  output_tokens: z.number().nullish(),
  input_tokens_details: z
    .looseObject({ cached_tokens: z.number().nullish(), cache_write_tokens: z.number().nullish() })
    .nullish(),
  output_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullish() }).nullish(),
})
