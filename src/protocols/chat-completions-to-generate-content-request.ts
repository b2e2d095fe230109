/**
 * A chat-completions request as the generate-content protocol has it. What has no counterpart is left out and named.
 * Source: translation, "Request, to `generate-content`".
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import { translatableChatRequest } from '../../schemas/chat-completions-conversation.ts'
import { picturesOf, translateConversation } from './chat-completions-to-generate-content-contents.ts'
import { translateTools } from './chat-completions-to-generate-content-tools.ts'
import { invalidField, parseJsonBody, readClientJson } from './client-json.ts'
import type { FetchedFile, WireRequest } from './dialect.ts'
import { DroppedFields } from './dropped-fields.ts'
import { familyOf, type ModelFamily, thinkingConfig } from './generate-content-family.ts'
import { schemaSubset } from './schema-subset.ts'

export interface GenerateContentTarget {
  /** As the upstream calls it: what the model takes is known by its name. */
  readonly model: string
  /** Tokens: the client's limit or the model's ceiling; null for none. */
  readonly outputLimit: number | null
  /** The pictures of `picturesToFetch`. */
  readonly fetched: ReadonlyMap<string, FetchedFile>
}

const request = translatableChatRequest.extend({
  n: z.int().nullish(),
  seed: z.int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  response_format: z
    .discriminatedUnion(
      'type',
      [
        z.looseObject({ type: z.literal('text') }),
        z.looseObject({ type: z.literal('json_object') }),
        z.looseObject({
          type: z.literal('json_schema'),
          json_schema: z.looseObject({ schema: z.record(z.string(), z.unknown()).nullish() }),
        }),
      ],
      { error: () => 'such a response format cannot be translated for this model' },
    )
    .nullish(),
})
type Request = z.infer<typeof request>

/** Fields without a counterpart, in the order in which they are named. */
const WITHOUT_COUNTERPART = [
  'logit_bias',
  'user',
  'parallel_tool_calls',
  'logprobs',
  'top_logprobs',
  'audio',
  'function_call',
  'functions',
  'modalities',
  'prediction',
  'safety_identifier',
  'service_tier',
  'verbosity',
  'web_search_options',
] as const

const MAX_STOP_SEQUENCES = 5
const SEED_BOUND = 2 ** 31

const read = (body: Buffer): Request => readClientJson(request, parseJsonBody(body))

/**
 * The http(s) URLs of pictures, each once.
 * @throws Failure `invalid_request` with a message that names the field
 */
export const picturesToFetch = (body: Buffer): readonly string[] => picturesOf(read(body).messages)

/** @throws Failure `invalid_request` with a message that names the field */
export function translateRequest(body: Buffer, target: GenerateContentTarget): WireRequest {
  const request = read(body)
  const family = familyOf(target.model)
  const dropped = new DroppedFields()
  for (const field of WITHOUT_COUNTERPART)
    if (request[field] != null && request[field] !== '') dropped.add(field)
  const { instruction, contents } = translateConversation(request.messages, {
    fetched: target.fetched,
    needsSignatures: family.needsSignatures,
  })
  const config = generationConfig(request, target.outputLimit, family, dropped)
  const wire = {
    ...(instruction.length === 0 ? {} : { systemInstruction: { parts: instruction } }),
    contents,
    ...translateTools(request, family, dropped),
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  }
  return { body: printed(wire), dropped: dropped.all() }
}

/** JSON can be read at any depth, but not be printed at any. */
function printed(wire: object): Buffer {
  try {
    return Buffer.from(JSON.stringify(wire), 'utf8')
  } catch {
    throw invalidField('', 'it is nested too deeply')
  }
}

function generationConfig(
  request: Request,
  outputLimit: number | null,
  family: ModelFamily,
  dropped: DroppedFields,
): object {
  return {
    ...given('maxOutputTokens', outputLimit),
    ...given('temperature', request.temperature),
    ...given('topP', request.top_p),
    ...given('candidateCount', request.n === 1 ? null : request.n),
    ...given('seed', request.seed == null ? null : request.seed % SEED_BOUND),
    ...given('presencePenalty', request.presence_penalty),
    ...given('frequencyPenalty', request.frequency_penalty),
    ...given('stopSequences', stopSequences(request, dropped)),
    ...responseFormat(request, family),
    ...given('thinkingConfig', thinking(request, family, dropped)),
  }
}

const given = (name: string, value: unknown): object => (value == null ? {} : { [name]: value })

function stopSequences({ stop }: Request, dropped: DroppedFields): readonly string[] | null {
  const given = typeof stop === 'string' ? [stop] : (stop ?? [])
  const sequences = given.filter((sequence) => sequence !== '')
  if (sequences.length < given.length) dropped.add('stop', 'empty sequences')
  if (sequences.length > MAX_STOP_SEQUENCES)
    dropped.add('stop', `sequences after the first ${MAX_STOP_SEQUENCES}`)
  return sequences.length === 0 ? null : sequences.slice(0, MAX_STOP_SEQUENCES)
}

function responseFormat({ response_format: format }: Request, family: ModelFamily): object {
  if (format == null || format.type === 'text') return {}
  const json = { responseMimeType: 'application/json' }
  const schema = format.type === 'json_schema' ? format.json_schema.schema : null
  if (schema == null) return json
  return family.takesJsonSchema
    ? { ...json, responseJsonSchema: schema }
    : { ...json, responseSchema: schemaSubset(schema) }
}

function thinking(
  { reasoning_effort: effort }: Request,
  family: ModelFamily,
  dropped: DroppedFields,
): object | null {
  if (effort == null) return null
  const config = thinkingConfig(family, effort)
  if (config === null && !(effort === 'none' && family.thinking === null)) dropped.add('reasoning_effort')
  return config
}
