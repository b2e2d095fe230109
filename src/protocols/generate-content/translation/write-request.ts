/**
 * Writes a conversation as a request of the generate-content protocol. What the protocol cannot say is named. See
 * docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import type { Conversation, ConversationSettings, Setting } from '../../../../schemas/chat/conversation.ts'
import type { ChatCall, EncodeOptions } from '../../dialect.ts'
import { invalidField } from '../../request/client-json.ts'
import { hasMarks } from '../../translate/cache-key.ts'
import { type DroppedFields, nameSettings } from '../../translate/dropped-fields.ts'
import { type ModelFamily, readFamily, thinkingConfig } from '../family.ts'
import { schemaSubset } from './schema-subset.ts'
import { writeContents } from './write-contents.ts'
import { isForced, type SentTools, writeTools } from './write-tools.ts'

const MAX_STOP_SEQUENCES = 5
const SEED_BOUND = 2 ** 31

/**
 * The upstream's name of the model determines its abilities.
 * @throws Failure `invalid_request` with a message that names the field
 */
export function writeGenerateContentRequest(
  conversation: Conversation,
  call: ChatCall,
  { upstreamModel, outputCeiling, fetched, provider }: EncodeOptions,
  dropped: DroppedFields,
): Buffer {
  const { settings } = conversation
  const family = readFamily(upstreamModel)
  nameSettings(settings, ['singleCall', 'user', 'metadata', 'verbosity', 'cacheKey', 'serviceTier'], dropped)
  if (hasMarks(conversation)) dropped.add('cache_control')
  const { instruction, contents } = writeContents(
    conversation,
    { fetched, needsSignatures: family.needsSignatures },
    dropped,
  )
  const tools = writeTools(conversation, { family, ...(provider !== undefined && { provider }) }, dropped)
  const config = {
    ...generationConfig(settings, call.outputLimit ?? outputCeiling, family, dropped),
    ...responseFormat(settings, family, tools, dropped),
  }
  const wire = {
    ...(instruction.length === 0 ? {} : { systemInstruction: { parts: instruction } }),
    contents,
    ...tools,
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  }
  return Buffer.from(JSON.stringify(wire), 'utf8')
}

const setIfGiven = (name: string, value: unknown): object => (value == null ? {} : { [name]: value })

function generationConfig(
  settings: ConversationSettings,
  outputLimit: number | null,
  family: ModelFamily,
  dropped: DroppedFields,
): object {
  return {
    ...setIfGiven('maxOutputTokens', outputLimit),
    ...setIfGiven('temperature', settings.temperature?.value),
    ...setIfGiven('topP', settings.topP?.value),
    ...setIfGiven('topK', settings.topK?.value),
    ...setIfGiven('candidateCount', settings.choices?.value),
    // Cut to the protocol's 32 bits.
    ...setIfGiven('seed', settings.seed === undefined ? null : settings.seed.value % SEED_BOUND),
    ...penalties(settings, family, dropped),
    ...setIfGiven('stopSequences', stopSequences(settings, dropped)),
    ...setIfGiven('thinkingConfig', thinking(settings, family, dropped)),
    ...logprobs(settings),
    ...modalities(settings, dropped),
  }
}

/** Returns the penalties; current models refuse any but 0. */
function penalties(settings: ConversationSettings, family: ModelFamily, dropped: DroppedFields): object {
  const { presencePenalty: presence, frequencyPenalty: frequency } = settings
  if (family.takesPenalties)
    return {
      ...setIfGiven('presencePenalty', presence?.value),
      ...setIfGiven('frequencyPenalty', frequency?.value),
    }
  for (const penalty of [presence, frequency])
    if (penalty?.value) dropped.add(penalty.field, 'this model has no such setting')
  return {}
}

function stopSequences({ stop }: ConversationSettings, dropped: DroppedFields): readonly string[] | null {
  if (stop === undefined) return null
  const sequences = stop.value.filter((sequence) => sequence !== '')
  if (sequences.length === 0) dropped.add(stop.field, 'empty sequences')
  else if (sequences.length < stop.value.length) dropped.change(stop.field, 'without its empty sequences')
  if (sequences.length > MAX_STOP_SEQUENCES)
    dropped.change(stop.field, `cut after ${MAX_STOP_SEQUENCES} sequences`)
  return sequences.length === 0 ? null : sequences.slice(0, MAX_STOP_SEQUENCES)
}

function responseFormat(
  { format }: ConversationSettings,
  family: ModelFamily,
  sent: SentTools,
  dropped: DroppedFields,
): object {
  if (format === undefined) return {}
  if (format.value.type === 'other')
    throw invalidField(`${format.field}.type`, 'such a response format cannot be translated for this model')
  const isBesideTools = sent.tools !== undefined && !family.combinesTools
  if (isBesideTools || isForced(sent)) {
    const others = isBesideTools ? 'tools for this model' : 'a forced tool_choice'
    dropped.add(format.field, `not together with ${others}`)
    return {}
  }
  const json = { responseMimeType: 'application/json' }
  if (format.value.type === 'json') return json
  const { schema } = format.value
  return family.takesJsonSchema
    ? { ...json, responseJsonSchema: schema }
    : { ...json, responseSchema: schemaSubset(schema) }
}

function thinking(
  { reasoning }: ConversationSettings,
  family: ModelFamily,
  dropped: DroppedFields,
): object | null {
  if (reasoning === undefined) return null
  const { field, value: wanted } = reasoning
  const config = thinkingConfig(family, wanted)
  const isOff = wanted.depth.type === 'off'
  if (isOff && family.alwaysReasons)
    dropped.change(field, 'this model always reasons: it is asked for the least')
  if (config === null && !(isOff && family.thinking === null)) dropped.add(field)
  return config
}

const logprobs = ({ logprobs: asked, topLogprobs: top }: ConversationSettings): object =>
  asked === undefined ? {} : { responseLogprobs: true, ...setIfGiven('logprobs', top?.value) }

const MODALITIES: Readonly<Record<string, string>> = { text: 'TEXT', image: 'IMAGE' }
/** The protocol's audio format; other formats would have to be transcoded. */
const AUDIO_FORMAT = 'pcm16'

/** Returns the modalities. Speech comes without text: the protocol has no answer with both. */
function modalities({ modalities: asked, speech }: ConversationSettings, dropped: DroppedFields): object {
  if (asked === undefined) return {}
  if (asked.value.includes('audio')) {
    if (speech?.value.format === AUDIO_FORMAT)
      return { responseModalities: ['AUDIO'], ...voice(speech, dropped) }
    dropped.add(speech?.field ?? asked.field, 'this model answers in pcm16 only')
  }
  const known = asked.value.filter((modality) => Object.hasOwn(MODALITIES, modality))
  if (known.length === 0) dropped.add(asked.field)
  else if (known.length < asked.value.length) dropped.change(asked.field, `only ${known.join(', ')}`)
  // Text is what the protocol answers with anyway.
  if (known.every((modality) => modality === 'text')) return {}
  return { responseModalities: known.map((modality) => MODALITIES[modality]) }
}

function voice({ value }: Setting<{ readonly voice: unknown }>, dropped: DroppedFields): object {
  const { voice: voiceName } = value
  if (typeof voiceName === 'string' && voiceName !== '')
    return { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } } }
  if (voiceName != null && typeof voiceName !== 'string') dropped.add('audio.voice')
  return {}
}
