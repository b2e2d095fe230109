/**
 * Answers of the chat endpoints, as far as the gateway guarantees them. On native paths they have the upstream's own
 * further fields as well.
 */
import { z } from 'zod'

const tokens = z.int().min(0)

const urlCitation = z.looseObject({
  type: z.literal('url_citation'),
  url_citation: z.looseObject({
    start_index: z.int().describe('In characters of content.'),
    end_index: z.int(),
    url: z.string(),
    title: z.string(),
  }),
})
const answeredImage = z.looseObject({
  type: z.literal('image_url'),
  image_url: z.looseObject({ url: z.string().describe('A data URI.') }),
})

const completionUsage = z
  .looseObject({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens })
  .describe('Prompt tokens include the cached ones.')

export const chatCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int().describe('Epoch seconds.'),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      message: z.looseObject({
        role: z.string(),
        content: z.string().nullable(),
        tool_calls: z.array(z.looseObject({ id: z.string(), type: z.string() })).optional(),
        refusal: z.string().nullish().describe('Why the model does not answer.'),
        annotations: z.array(urlCitation).optional().describe('The sources that content cites.'),
        images: z.array(answeredImage).optional().describe('Pictures that the model drew.'),
      }),
      finish_reason: z.string().nullable().describe('stop, length, tool_calls or content_filter.'),
    }),
  ),
  usage: completionUsage,
})

export const textCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('text_completion'),
  created: z.int().describe('Epoch seconds.'),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      text: z.string(),
      logprobs: z.looseObject({}).nullable(),
      finish_reason: z.string().nullable().describe('stop, length or content_filter.'),
    }),
  ),
  usage: completionUsage,
})

/** A block of another type has other fields. */
const textBlock = z.looseObject({ type: z.string(), text: z.string().optional() })

export const message = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  content: z.array(textBlock).describe('Blocks such as {type: text, text}.'),
  stop_reason: z.string().nullable(),
  usage: z.looseObject({ input_tokens: tokens, output_tokens: tokens }),
})

export const tokenCount = z.looseObject({ input_tokens: tokens })
export const contentTokenCount = z.looseObject({ totalTokens: tokens })

export const generateContentAnswer = z.looseObject({
  candidates: z.array(
    z.looseObject({
      content: z.looseObject({
        role: z.string(),
        parts: z
          .array(z.looseObject({ text: z.string().optional() }))
          .optional()
          .describe('Left out where there is none, as at the end of a stream.'),
      }),
      finishReason: z.string().optional(),
      index: z.int().optional(),
    }),
  ),
  usageMetadata: z.looseObject({
    promptTokenCount: tokens,
    candidatesTokenCount: tokens.optional(),
    totalTokenCount: tokens,
  }),
})

const responseUsage = z.looseObject({
  input_tokens: tokens,
  input_tokens_details: z.looseObject({ cached_tokens: tokens }),
  output_tokens: tokens,
  output_tokens_details: z.looseObject({ reasoning_tokens: tokens }),
  total_tokens: tokens,
})

export const response = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().describe('Epoch seconds.'),
  status: z.string().describe('completed, incomplete or failed.'),
  model: z.string(),
  output: z
    .array(z.looseObject({ type: z.string() }))
    .describe('Items in their order: message, reasoning, function_call, image_generation_call and others.'),
  usage: responseUsage,
})

export const compaction = z.looseObject({
  id: z.string(),
  object: z.literal('response.compaction'),
  created_at: z.number().describe('Epoch seconds.'),
  output: z
    .array(z.looseObject({ type: z.string() }))
    .describe("What is kept of the conversation, and an item of type 'compaction' for the rest."),
  usage: responseUsage,
})
