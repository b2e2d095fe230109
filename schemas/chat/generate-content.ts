/**
 * The generate-content client contract. Unknown fields are let through: on native paths they belong to the upstream.
 * As with the vendor, a field may be named in snake case, and one object may replace a list of one.
 * See docs/api-rules.md, "Chat protocols".
 */
import { z } from 'zod'
import { MAX_CHOICES } from './chat-completions.ts'

const acceptList = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    (value) => (typeof value === 'object' && value !== null && !Array.isArray(value) ? [value] : value),
    z.array(item),
  )

const parts = acceptList(z.looseObject({ text: z.string().nullish() }))

const content = z.looseObject({ role: z.string().nullish(), parts: parts.nullish() })

const outputLimit = z.int().min(1).max(100_000_000).nullish()
const candidates = z.int().min(1).max(MAX_CHOICES).nullish()

const generationConfig = z
  .looseObject({
    maxOutputTokens: outputLimit,
    max_output_tokens: outputLimit,
    candidateCount: candidates,
    candidate_count: candidates,
    temperature: z.number().min(0).max(2).nullish(),
    topP: z.number().nullish(),
    top_p: z.number().nullish(),
  })
  .nullish()

export const generateContentRequest = z.looseObject({
  contents: acceptList(content)
    .refine((contents) => contents.length > 0, 'must hold at least one content')
    .meta({ minItems: 1 })
    .describe('The conversation so far.'),
  systemInstruction: content.nullish().describe('System prompt.'),
  system_instruction: content.nullish(),
  generationConfig,
  generation_config: generationConfig,
  tools: acceptList(z.looseObject({})).nullish(),
})
export type GenerateContentRequest = z.infer<typeof generateContentRequest>

const countedRequest = generateContentRequest
  .extend({ model: z.string().nullish().describe('The same model as in the path.') })
  .nullish()
/** Exactly one of them is counted. */
export const countContentTokensRequest = z.looseObject({
  contents: generateContentRequest.shape.contents.nullish(),
  generateContentRequest: countedRequest.describe('A whole request, in place of contents.'),
  generate_content_request: countedRequest,
})

/** The fields that have two names, by the vendor's own. */
export const SNAKE_CASE_NAMES = {
  systemInstruction: 'system_instruction',
  generationConfig: 'generation_config',
  maxOutputTokens: 'max_output_tokens',
  candidateCount: 'candidate_count',
} as const
