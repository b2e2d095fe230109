/**
 * Reads a chat-completions request into the canonical conversation. What that cannot hold is named. See docs/translation.md,
 * "The request".
 */

import {
  type AnsweredImage,
  type CalledTool,
  type ConversationMessage,
  type ToolChoice as GivenChoice,
  type OfferedTool as GivenTool,
  type ReadablePart,
  type SpokenPart,
  type TextPart,
  translatableChatRequest,
} from '../../../../schemas/chat/chat-completions-conversation.ts'
import type {
  CacheMark,
  Conversation,
  ConversationSettings,
  ConversationTurn,
  FileSource,
  GivenFile,
  OfferedTool,
  Reasoning,
  SaidText,
  ToolCall,
  ToolChoice,
  ToolResult,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../../loose.ts'
import { invalidField, readClientJson } from '../../request/client-json.ts'
import { readFileData } from '../../translate/data-uri.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'
import { findLink, readUrl } from '../../translate/linked-files.ts'
import { readSeal } from '../../translate/seal.ts'
import { readSchemaFormat } from '../../translate/settings.ts'
import { type ToolConversation, withTools } from '../legacy-functions.ts'
import { nameFieldsLeftOut, nameMessageFieldsLeftOut, saysNothing } from './fields.ts'
import { readWantedThinking, THINKING_FIELDS } from './wanted-thinking.ts'

/** Fields that the conversation holds, or that are named where they are read. */
const HELD: ReadonlySet<string> = new Set([
  'tools',
  'web_search_options',
  'tool_choice',
  'parallel_tool_calls',
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
  'user',
  'safety_identifier',
  'metadata',
  'cache_control',
  'prompt_cache_key',
  'service_tier',
  'verbosity',
  ...THINKING_FIELDS,
])

/**
 * @param body the client's request, parsed
 * @throws Failure `invalid_request` with a message that names the field
 */
export function readCompletionConversation(body: unknown, dropped: DroppedFields): Conversation {
  const request = readClientJson(translatableChatRequest, body)
  nameFieldsLeftOut(body, HELD, dropped)
  nameMessageFieldsLeftOut(request.messages, ['cache_control', 'images', 'detail'], dropped)
  const asked = withTools(request)
  const { instructions, turns } = readMessages(asked.messages)
  const cache = readMark(request)
  return {
    instructions,
    turns,
    tools: asked.tools.map((tool, index) => readTool(tool, index)),
    toolChoice: readChoice(asked, request.tool_choice == null ? 'function_call' : 'tool_choice'),
    isParallel: asked.isParallel,
    ...(cache !== undefined && { cache }),
    settings: readSettings(request, dropped),
  }
}

function readMark({ cache_control: mark }: LooseObject): CacheMark | undefined {
  return isObject(mark) ? mark : undefined
}

const withMark = <Value extends object>(value: Value, given: LooseObject): Value => {
  const cache = readMark(given)
  return cache === undefined ? value : { ...value, cache }
}

interface ReadMessages {
  readonly instructions: SaidText[]
  readonly turns: ConversationTurn[]
}

function readMessages(messages: readonly ConversationMessage[]): ReadMessages {
  const instructions: SaidText[] = []
  const turns: ConversationTurn[] = []
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        instructions.push(...markLast(readTexts(message.content), message))
        break
      case 'user':
        turns.push({ role: 'user', parts: markLast(readReadable(message.content, path), message) })
        break
      case 'assistant':
        turns.push({ role: 'assistant', parts: markLast(readAssistant(message, path), message) })
        break
      case 'tool':
        turns.push({ role: 'user', parts: markLast([readResult(message, path)], message) })
    }
  }
  return { instructions, turns }
}

const isBlank = (part: TurnPart): boolean => part.type === 'text' && part.text.trim() === ''

/** Moves the cache marker of a whole message to its last part that is not blank, where the cached part ends. */
function markLast<P extends TurnPart>(parts: P[], message: LooseObject): P[] {
  const cache = readMark(message)
  const last = parts.findLastIndex((part) => !isBlank(part))
  if (cache === undefined || last < 0) return parts
  return parts.map((part, index) => (index === last && !('cache' in part) ? { ...part, cache } : part))
}

const readTexts = (content: string | readonly TextPart[]): SaidText[] =>
  typeof content === 'string'
    ? [{ type: 'text', text: content }]
    : content.map((part) => withMark({ type: 'text', text: part.text }, part))

function readReadable(content: string | readonly ReadablePart[], path: string): (SaidText | GivenFile)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part, index) => withMark(readPart(part, `${path}.content[${index}]`), part))
}

function readPart(part: ReadablePart, path: string): SaidText | GivenFile {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'file': {
      const { file_data: data, filename } = part.file
      const at = `${path}.file.file_data`
      const source = findLink(part, path) ?? data
      const named = filename ? { filename } : {}
      return { type: 'file', source: readSource(source, filename, at), ...named, path: at }
    }
    case 'input_audio': {
      const { data, format } = part.input_audio
      return { type: 'audio', source: readSource(data, `audio.${format}`, `${path}.input_audio.data`), path }
    }
    default: {
      const { path: at, url } = readUrl(part, path)
      const { detail } = toFields(toFields(part).image_url)
      const isDetailed = typeof detail === 'string' && detail !== 'auto'
      return {
        type: part.type === 'image_url' ? 'image' : 'video',
        source: readSource(findLink(part, path) ?? url, null, at),
        ...(isDetailed && { detail: { field: 'image_url.detail', value: detail } }),
        path: at,
      }
    }
  }
}

function readSource(
  given: string | { readonly url: string },
  filename: string | null | undefined,
  path: string,
): FileSource {
  if (typeof given !== 'string') return { type: 'link', url: given.url }
  const file = readFileData(given, filename)
  if (file === null) throw invalidField(path, 'it must be a base64 data URI that names its media type')
  return { type: 'inline', ...file }
}

type Assistant = Extract<ConversationMessage, { role: 'assistant' }>

function readAssistant(message: Assistant, path: string): TurnPart[] {
  const { content, refusal } = message
  const said: TurnPart[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []).map(readSpoken)
  const thoughts = (message.thinking_blocks ?? []).map(readSpoken)
  // Clients that keep the text of the reasoning only: it proves nothing.
  const shown = toText(message.reasoning_content)
  const unproved: TurnPart[] =
    thoughts.length > 0 || shown === '' ? [] : [{ type: 'reasoning', text: shown, seal: null }]
  const refused: TurnPart[] = refusal == null ? [] : [{ type: 'refusal', text: refusal }]
  const images = (message.images ?? []).map((image, index) =>
    readAnsweredImage(image, `${path}.images[${index}].image_url.url`),
  )
  const calls = (message.tool_calls ?? []).map((call, index) =>
    readCall(call, `${path}.tool_calls[${index}].function.arguments`),
  )
  return [...unproved, ...thoughts, ...said, ...refused, ...images, ...calls]
}

function readSpoken(part: SpokenPart): SaidText | Reasoning | Extract<TurnPart, { type: 'refusal' }> {
  switch (part.type) {
    case 'text':
      return withMark({ type: 'text', text: part.text }, part)
    case 'refusal':
      return { type: 'refusal', text: part.refusal }
    case 'thinking': {
      const seal = readSeal(part.signature ?? '', 'messages')
      return { type: 'reasoning', text: part.thinking ?? '', seal }
    }
    case 'redacted_thinking': {
      const seal = readSeal(part.data ?? '', 'messages')
      return { type: 'reasoning', text: '', seal: seal === null ? null : { ...seal, isRedacted: true } }
    }
  }
}

/** Reads the signature in the fields that the answer used, under either vendor's name. */
function readCallSeal({ extra_content: extra }: LooseObject) {
  const signatures = Object.values(toFields(extra)).map((more) => toText(toFields(more).thought_signature))
  return readSeal(signatures.find((signature) => signature !== '') ?? '', 'generate-content')
}

/** A picture of an earlier answer, to be edited. */
function readAnsweredImage(image: AnsweredImage, path: string): GivenFile {
  const seal = readCallSeal(image)
  const source = readSource(image.image_url.url, null, path)
  return { type: 'image', source, field: 'messages.images', path, ...(seal !== null && { seal }) }
}

const readCall = (call: CalledTool, path: string): ToolCall => ({
  type: 'tool_call',
  id: call.id,
  name: call.function.name,
  kind: 'function',
  input: call.function.arguments ?? '',
  seal: readCallSeal(call),
  path,
})

const readResult = (message: Extract<ConversationMessage, { role: 'tool' }>, path: string): ToolResult => ({
  type: 'tool_result',
  callId: message.tool_call_id,
  content: readReadable(message.content ?? [], path),
  isPlain: typeof message.content === 'string',
  isError: false,
  path: `${path}.tool_call_id`,
})

function readTool(tool: GivenTool, index: number): OfferedTool {
  const path = `tools[${index}]`
  if (tool.type === 'function') return readFunction(tool, path)
  if (tool.type.startsWith('web_search')) return readSearch(tool, path)
  return { type: 'other', name: tool.type, given: tool, path }
}

function readFunction(tool: GivenTool, path: string): OfferedTool {
  const offered = tool.function
  if (offered === undefined) throw invalidField(`${path}.function`, 'it is missing')
  const cache = readMark(tool) ?? readMark(offered)
  return {
    type: 'function',
    name: offered.name,
    description: offered.description ?? null,
    schema: offered.parameters ?? null,
    isStrict: offered.strict === true,
    ...(cache !== undefined && { cache }),
    path: `${path}.function`,
  }
}

function readSearch(tool: GivenTool, path: string): OfferedTool {
  const place = toFields(tool.user_location)
  const details = Object.hasOwn(place, 'approximate') ? toFields(place.approximate) : place
  const contextSize = toText(tool.search_context_size)
  const { allowed_domains: allowed } = toFields(tool.filters)
  return withMark(
    {
      type: 'web_search',
      allowedDomains: toList(allowed).filter((domain) => typeof domain === 'string'),
      blockedDomains: [],
      location: Object.keys(details).length === 0 ? null : details,
      contextSize: saysNothing('search_context_size', contextSize) ? null : contextSize,
      maxUses: null,
      given: tool,
      path,
    },
    tool,
  )
}

function readChoice({ choice }: ToolConversation, field: string): Conversation['toolChoice'] {
  if (choice === null) return null
  return { field, value: toolChoice(choice) }
}

function toolChoice(choice: GivenChoice): ToolChoice {
  if (typeof choice === 'string') return choice
  if (choice.type === 'function') return { name: choice.function.name }
  const { mode, tools } = choice.allowed_tools
  return { mode, allowed: tools.map((allowed) => allowed.function.name) }
}

type Request = ReturnType<typeof translatableChatRequest.parse>

/** Returns a setting unless it leaves everything as it is. */
function setting<T>(field: string, value: T | null | undefined) {
  return value == null || saysNothing(field, value) ? undefined : { field, value }
}

function readSettings(request: Request, dropped: DroppedFields): ConversationSettings {
  const { stop, logprobs, top_logprobs: top } = request
  if (logprobs !== true && top != null && top > 0) dropped.add('top_logprobs', 'only together with logprobs')
  return {
    temperature: setting('temperature', request.temperature),
    topP: setting('top_p', request.top_p),
    topK: setting('top_k', request.top_k != null && request.top_k > 0 ? request.top_k : null),
    stop: setting('stop', typeof stop === 'string' ? [stop] : stop),
    seed: setting('seed', request.seed),
    choices: setting('n', request.n),
    presencePenalty: setting('presence_penalty', request.presence_penalty),
    frequencyPenalty: setting('frequency_penalty', request.frequency_penalty),
    reasoning: readWantedThinking(request, dropped),
    format: readFormat(request),
    verbosity: setting('verbosity', request.verbosity),
    logprobs: logprobs === true ? { field: 'logprobs', value: true } : undefined,
    topLogprobs: logprobs === true ? setting('top_logprobs', top) : undefined,
    singleCall:
      request.parallel_tool_calls === false ? { field: 'parallel_tool_calls', value: true } : undefined,
    modalities: setting('modalities', request.modalities),
    speech: readSpeech(request, dropped),
    ...readUser(request, dropped),
    cacheKey: setting('prompt_cache_key', request.prompt_cache_key),
    serviceTier: setting('service_tier', request.service_tier),
  }
}

function readFormat({ response_format: format }: Request): ConversationSettings['format'] {
  const { type, json_schema: given } = toFields(format)
  if (type === undefined || type === 'text') return undefined
  const field = 'response_format'
  const fields = toFields(given)
  const { schema } = fields
  if (type === 'json_object' || (type === 'json_schema' && isObject(given) && schema == null))
    return { field, value: { type: 'json' } }
  if (type !== 'json_schema' || !isObject(schema)) return { field, value: { type: 'other' } }
  return { field, value: readSchemaFormat(fields, schema, `${field}.json_schema.schema`) }
}

function readSpeech({ modalities, audio }: Request, dropped: DroppedFields): ConversationSettings['speech'] {
  if (audio == null) return undefined
  if (modalities?.includes('audio') === true)
    return { field: 'audio', value: { voice: audio.voice, format: audio.format ?? null } }
  dropped.add('audio', 'only together with modalities')
  return undefined
}

/** Returns the first id of the client's user, and the rest of the metadata. */
function readUser(request: Request, dropped: DroppedFields): Pick<ConversationSettings, 'user' | 'metadata'> {
  const { user_id: userId, ...others } = toFields(request.metadata)
  const metadata = Object.keys(others).length === 0 ? undefined : { field: 'metadata', value: others }
  const ids = [
    ['user', request.user],
    ['safety_identifier', request.safety_identifier],
    ['metadata.user_id', userId],
  ] as const
  const [first, ...rest] = ids.filter(([, id]) => id != null && id !== '')
  if (first === undefined) return { metadata }
  const [field, id] = first
  for (const [other, otherId] of rest) if (otherId !== id) dropped.add(other, `${field} goes before it`)
  if (typeof id === 'string') return { user: { field, value: id }, metadata }
  dropped.add(field, 'not a string')
  return { metadata }
}
