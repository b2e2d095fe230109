/**
 * The contract of the older completions endpoint, as far as it differs from chat-completions, whose contract checks all
 * other fields. See docs/api-rules.md, "Completions".
 */
import { z } from 'zod'
import { chatCompletionsRequest } from './chat-completions.ts'

const MAX_LOGPROBS = 20

const { model, max_tokens, temperature, n, stream, stream_options, usage } = chatCompletionsRequest.shape

const onlyInChat = z.null('it belongs to POST /v1/chat/completions; use that, or leave it out').optional()

export const completionsRequest = z.looseObject({
  model,
  prompt: z
    .union([
      z.string(),
      z.array(z.string('it must be text; send tokens as their text')).meta({ minItems: 1, maxItems: 1 }),
    ])
    .refine(
      (prompt) => typeof prompt === 'string' || prompt.length === 1,
      'it must be one text, or a list of one; send the others in separate requests',
    )
    .describe('One text. Several, and tokens, are refused.'),
  max_tokens,
  temperature,
  n,
  stream,
  stream_options,
  usage,
  logprobs: z
    .int()
    .min(0)
    .max(MAX_LOGPROBS)
    .nullish()
    .describe('Number of likely tokens that are reported beside each.'),
  best_of: z.int().min(1).nullish().describe('Left out unless it says what n says.'),
  suffix: z
    .literal(['', null], 'the model cannot insert text before another; leave it out')
    .optional()
    .describe('Refused: models of chats insert nothing.'),
  echo: z
    .literal([false, null], 'the answer cannot repeat the prompt; leave it out')
    .optional()
    .describe('Refused when true.'),
  messages: onlyInChat,
  tools: onlyInChat,
  functions: onlyInChat,
  web_search_options: onlyInChat,
})
