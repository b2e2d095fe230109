/**
 * The contracts of endpoints whose requests pass to a channel. Unknown fields are let through: they belong to the
 * upstream. See docs/api-rules.md, "Embeddings, rerank, transcriptions".
 */
import { z } from 'zod'

/** Texts, or documents, of one request. */
export const MAX_INPUTS = 2048
/** In all lists of tokens together. */
export const MAX_INPUT_TOKENS = 400_000

const model = z.string().min(1).describe('Model id or alias.')
const inputText = z.string().min(1)
const tokenList = z.array(z.int().min(0)).min(1).max(MAX_INPUT_TOKENS)

export const embeddingsRequest = z.looseObject({
  model,
  input: z
    .union([
      inputText,
      z.array(inputText).min(1).max(MAX_INPUTS),
      tokenList,
      z.array(tokenList).min(1).max(MAX_INPUTS),
    ])
    .describe(`A text, a list of tokens, or a list of up to ${MAX_INPUTS} of either.`),
  encoding_format: z.enum(['float', 'base64']).nullish(),
  dimensions: z.int().positive().nullish(),
  user: z.string().nullish(),
})

const tokens = z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() })

export const embeddingsAnswer = z.looseObject({
  object: z.literal('list'),
  data: z.array(
    z.looseObject({
      object: z.literal('embedding'),
      index: z.int(),
      embedding: z.union([z.array(z.number()), z.string()]).describe('Numbers, or base64 of them.'),
    }),
  ),
  model: z.string(),
  usage: tokens,
})

export const rerankRequest = z.looseObject({
  model,
  query: z.string().min(1).describe('What the documents are compared with.'),
  documents: z
    .array(z.union([z.string(), z.looseObject({})]))
    .min(1)
    .max(MAX_INPUTS)
    .describe('Texts, or objects as the upstream has them.'),
  top_n: z.int().min(1).nullish().describe('Results at most; without it, one for each document.'),
  return_documents: z.boolean().nullish(),
})

export const rerankAnswer = z.looseObject({
  results: z.array(
    z.looseObject({
      index: z.int().describe('Place of the document in the request, from 0.'),
      relevance_score: z.number(),
    }),
  ),
})

const text = z.string()

/** A form whose files are described by its fields. */
export const transcriptionForm = z.looseObject({
  model,
  file: z.string().meta({ format: 'binary' }).describe('The sound: the whole form is at most 32 MiB.'),
  language: text.optional(),
  prompt: text.optional(),
  response_format: text.optional().describe('json, text, srt, verbose_json or vtt, as the model has them.'),
  temperature: text.optional(),
  stream: z.enum(['true', 'false']).optional(),
})

export const transcriptionAnswer = z.looseObject({
  text,
  usage: z
    .looseObject({ type: text })
    .optional()
    .describe('Seconds, or tokens, as the upstream reports them.'),
})
