/**
 * Translates a chat-completions request to the generate-content protocol. A field without a counterpart is dropped and
 * named. See docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import {
  translatableChatRequest,
  untouchedObject,
} from '../../../../schemas/chat/chat-completions-conversation.ts'
import { nameFieldsLeftOut, nameMessageFieldsLeftOut, saysNothing } from '../../chat-completions/fields.ts'
import { withTools } from '../../chat-completions/legacy-functions.ts'
import { THINKING_FIELDS, wantedThinking } from '../../chat-completions/wanted-thinking.ts'
import type { ChatCall, EncodedRequest, EncodeOptions } from '../../dialect.ts'
import { familyOf, type ModelFamily, thinkingConfig } from '../../generate-content/family.ts'
import { readClientJson } from '../../request/client-json.ts'
import { parsedBody } from '../chat-completions.ts'
import { DroppedFields } from '../dropped-fields.ts'
import { linkedFilesOf } from '../linked-files.ts'
import { translateConversation } from './contents.ts'
import { schemaSubset } from './schema-subset.ts'
import { isForced, type SentTools, translateTools } from './tools.ts'

const translatable = translatableChatRequest.extend({
  n: z.int().nullish(),
  // Its digits beyond those of a float change nothing: it is cut to the protocol's 32 bits.
  seed: z.number().refine(Number.isInteger, 'it must be an integer').nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.looseObject({ voice: z.unknown(), format: z.string().nullish() }).nullish(),
  response_format: z
    .discriminatedUnion(
      'type',
      [
        z.looseObject({ type: z.literal('text') }),
        z.looseObject({ type: z.literal('json_object') }),
        z.looseObject({
          type: z.literal('json_schema'),
          json_schema: z.looseObject({ schema: untouchedObject.nullish() }),
        }),
      ],
      { error: () => 'such a response format cannot be translated for this model' },
    )
    .nullish(),
})
type Request = z.infer<typeof translatable>

/** Fields that are sent to the upstream, or named where they are read. */
const SAID = [
  'tools',
  'web_search_options',
  'tool_choice',
  'functions',
  'function_call',
  'temperature',
  'top_p',
  'top_k',
  'n',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'stop',
  'response_format',
  'logprobs',
  'top_logprobs',
  'modalities',
  'audio',
  ...THINKING_FIELDS,
] as const

const MAX_STOP_SEQUENCES = 5
const SEED_BOUND = 2 ** 31

/**
 * Returns the http(s) URLs of files, each once.
 * @throws Failure `invalid_request` with a message that names the field
 */
export const filesToFetch = (call: ChatCall): readonly string[] =>
  linkedFilesOf(readClientJson(translatable, parsedBody(call)).messages)

/**
 * Translates a request. The upstream's name of the model determines its abilities.
 * @throws Failure `invalid_request` with a message that names the field
 */
export function translateRequest(
  call: ChatCall,
  { upstreamModel, outputCeiling, fetched, provider }: EncodeOptions,
): EncodedRequest {
  const given = parsedBody(call)
  const request = readClientJson(translatable, given)
  const family = familyOf(upstreamModel)
  const dropped = new DroppedFields()
  nameFieldsLeftOut(given, SAID, dropped)
  nameMessageFieldsLeftOut(request.messages, ['images'], dropped)
  const asked = withTools(request)
  const { instruction, contents } = translateConversation(asked.messages, {
    fetched,
    needsSignatures: family.needsSignatures,
  })
  const tools = translateTools(asked, { family, provider }, dropped)
  const config = {
    ...generationConfig(request, call.outputLimit ?? outputCeiling, family, dropped),
    ...responseFormat(request, family, tools, dropped),
  }
  const wire = {
    ...(instruction.length === 0 ? {} : { systemInstruction: { parts: instruction } }),
    contents,
    ...tools,
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  }
  return { body: Buffer.from(JSON.stringify(wire), 'utf8'), ...dropped.all() }
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
    ...given('topK', request.top_k != null && request.top_k > 0 ? request.top_k : null),
    ...given('candidateCount', request.n === 1 ? null : request.n),
    ...given('seed', request.seed == null ? null : request.seed % SEED_BOUND),
    ...penalties(request, family, dropped),
    ...given('stopSequences', stopSequences(request, dropped)),
    ...given('thinkingConfig', thinking(request, family, dropped)),
    ...logprobs(request, dropped),
    ...modalities(request, dropped),
  }
}

/** Returns the penalties; current models refuse any but 0. */
function penalties(request: Request, family: ModelFamily, dropped: DroppedFields): object {
  const { presence_penalty: presence, frequency_penalty: frequency } = request
  if (family.takesPenalties)
    return { ...given('presencePenalty', presence), ...given('frequencyPenalty', frequency) }
  if (presence) dropped.add('presence_penalty', 'this model has no such setting')
  if (frequency) dropped.add('frequency_penalty', 'this model has no such setting')
  return {}
}

const given = (name: string, value: unknown): object => (value == null ? {} : { [name]: value })

function stopSequences({ stop }: Request, dropped: DroppedFields): readonly string[] | null {
  const given = typeof stop === 'string' ? [stop] : (stop ?? [])
  const sequences = given.filter((sequence) => sequence !== '')
  if (given.length > 0 && sequences.length === 0) dropped.add('stop', 'empty sequences')
  else if (sequences.length < given.length) dropped.change('stop', 'without its empty sequences')
  if (sequences.length > MAX_STOP_SEQUENCES)
    dropped.change('stop', `cut after ${MAX_STOP_SEQUENCES} sequences`)
  return sequences.length === 0 ? null : sequences.slice(0, MAX_STOP_SEQUENCES)
}

function responseFormat(
  { response_format: format }: Request,
  family: ModelFamily,
  sent: SentTools,
  dropped: DroppedFields,
): object {
  if (format == null || format.type === 'text') return {}
  const isBesideTools = sent.tools !== undefined && !family.combinesTools
  if (isBesideTools || isForced(sent)) {
    const others = isBesideTools ? 'tools for this model' : 'a forced tool_choice'
    dropped.add('response_format', `not together with ${others}`)
    return {}
  }
  const json = { responseMimeType: 'application/json' }
  const schema = format.type === 'json_schema' ? format.json_schema.schema : null
  if (schema == null) return json
  return family.takesJsonSchema
    ? { ...json, responseJsonSchema: schema }
    : { ...json, responseSchema: schemaSubset(schema) }
}

function thinking(request: Request, family: ModelFamily, dropped: DroppedFields): object | null {
  const wanted = wantedThinking(request, dropped)
  if (wanted === null) return null
  const config = thinkingConfig(family, wanted)
  const isOff = wanted.depth.type === 'off'
  if (isOff && family.alwaysReasons)
    dropped.change(wanted.field, 'this model always reasons: it is asked for the least')
  if (config === null && !(isOff && family.thinking === null)) dropped.add(wanted.field)
  return config
}

function logprobs({ logprobs: isAsked, top_logprobs: top }: Request, dropped: DroppedFields): object {
  if (isAsked !== true) {
    if (top != null && top > 0) dropped.add('top_logprobs', 'only together with logprobs')
    return {}
  }
  return { responseLogprobs: true, ...given('logprobs', top === 0 ? null : top) }
}

const MODALITIES: Readonly<Record<string, string>> = { text: 'TEXT', image: 'IMAGE' }
/** The protocol's audio format; other formats would have to be transcoded. */
const AUDIO_FORMAT = 'pcm16'

/** Returns the modalities. Speech comes without text: the protocol has no answer with both. */
function modalities({ modalities: asked, audio }: Request, dropped: DroppedFields): object {
  if (asked == null || saysNothing('modalities', asked)) {
    if (audio != null) dropped.add('audio', 'only together with modalities')
    return {}
  }
  if (asked.includes('audio')) {
    if (audio?.format === AUDIO_FORMAT) {
      if (audio.voice != null && typeof audio.voice !== 'string') dropped.add('audio.voice')
      return { responseModalities: ['AUDIO'], ...voiceOf(audio.voice) }
    }
    dropped.add('audio', 'this model answers in pcm16 only')
  } else if (audio != null) dropped.add('audio', 'only together with modalities')
  const known = asked.filter((modality) => Object.hasOwn(MODALITIES, modality))
  if (known.length === 0) dropped.add('modalities')
  else if (known.length < asked.length) dropped.change('modalities', `only ${known.join(', ')}`)
  if (known.length === 0 || saysNothing('modalities', known)) return {}
  return { responseModalities: known.map((modality) => MODALITIES[modality]) }
}

const voiceOf = (voice: unknown): object =>
  typeof voice === 'string' && voice !== ''
    ? { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } } }
    : {}
