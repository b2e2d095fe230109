/**
 * Recognises valid chat-completions requests by their bytes, with tests that are made of the contract. The contract itself,
 * `chatCompletionsRequest`, needs the request parsed, copies the fields and explains errors, which costs many times as
 * much. A request accepted here is valid under the contract too; the contract decides on all others.
 */

import {
  type ChatCompletionsRequest,
  chatCompletionsRequest,
} from '../../../schemas/chat/chat-completions.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { listNames } from '../../core/json/names.ts'
import { KnownNames, type NodeTest, scanJson, type Tape, Words } from '../../core/json/scanner/tape.ts'
import type { FieldSpan } from '../../core/json/splice.ts'
import type { LooseObject } from '../loose.ts'
import { ObjectContract, readType } from '../request/contract-test.ts'
import { MAX_TOOLS, MAX_UNCOUNTED_NODES } from '../request/counts.ts'
import {
  type Rule as FieldRule,
  lookUpRule,
  PREDICTION,
  readServiceTier,
  STORED_OBJECT_FIELDS,
} from '../request/foreign-fields.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'
import { LINK_FIELDS, type LinkedParts, NO_LINKS } from '../request/linked-parts.ts'
import { holdsSchema, isFormat, isPromptField } from '../request/prompt-fields.ts'
import { isThinkingField, readThinking } from '../request/thinking-tokens.ts'

/** The fields that the gateway reads of a request, its messages and tools excepted. */
export type ChatSettings = Pick<
  ChatCompletionsRequest,
  | 'model'
  | 'stream'
  | 'max_tokens'
  | 'max_completion_tokens'
  | 'temperature'
  | 'n'
  | 'tool_choice'
  | 'stream_options'
  | 'response_format'
  | 'usage'
> &
  Readonly<Partial<Record<(typeof SETTINGS)[number], unknown>>>

/** The fields that are changed on the way to an upstream; undefined where one is absent. */
export type ChangedFields = Readonly<
  Record<
    'model' | 'max_tokens' | 'max_completion_tokens' | 'stream_options' | 'usage' | typeof PREDICTION,
    FieldSpan | undefined
  >
>

export interface ReadChatRequest {
  readonly settings: ChatSettings
  /** Number of messages. */
  readonly messages: number
  /** Number of tools; null without a list of them. */
  readonly tools: number | null
  readonly builtInTools: readonly ServerTool[]
  /** The requested service tier, where it can change the price. */
  readonly serviceTier?: string | undefined
  /** Bytes of `messages`, as they were written. */
  readonly conversationBytes: number
  /** Those, and of other fields that upstreams make part of the prompt. */
  readonly promptBytes: number
  /** Tokens of reasoning that the request asks for; absent without any. */
  readonly thinkingTokens?: number
  readonly links: LinkedParts
  /** It offers only legacy functions. */
  readonly isLegacy: boolean
  readonly fields: ChangedFields
  /** Index of the request's opening brace. */
  readonly open: number
}

/** Levels whose fields are read: the request, its messages, one of them, its content, a part of that. */
const DEEPEST = 5

const NAMES = new KnownNames(listNames(CHAT_COMPLETIONS_NAMES), [
  ...STORED_OBJECT_FIELDS,
  ...LINK_FIELDS,
  'input_audio',
])
/** Parts of another type may hold a link, under a name that is not watched: the contract counts them. */
const isPlainPart: NodeTest = (tape, node) => tape.isOneOf(PLAIN_PARTS, readType(tape, node))
const PLAIN_PARTS = new Words(['text', 'refusal'])

const { shape } = chatCompletionsRequest
const MESSAGE = new ObjectContract<'content' | 'audio'>(shape.messages.element, ['audio'])
const isMessage: NodeTest = (tape, node) => {
  if (!MESSAGE.accepts(tape, node) || !tape.isMissing(tape.found(MESSAGE.place.audio))) return false
  const content = tape.found(MESSAGE.place.content)
  return !tape.isList(content) || tape.isListOf(content, isPlainPart)
}

const TOOL = new ObjectContract<'type'>(shape.tools.unwrap().unwrap().element)
const FUNCTION = new Words(['function'])
/** The contract reads a tool of another type: the upstream may run it, and its settings may name a stored object. */
const isFunction: NodeTest = (tape, node) =>
  TOOL.accepts(tape, node) && tape.isOneOf(FUNCTION, tape.found(TOOL.place.type))

const isAny: NodeTest = () => true

const SETTINGS = [
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'stop',
  'reasoning_effort',
  'prompt_cache_key',
  'metadata',
] as const
const REQUEST = new ObjectContract<keyof typeof shape | (typeof SETTINGS)[number]>(
  chatCompletionsRequest,
  SETTINGS,
  {
    messages: isMessage,
    tools: isFunction,
  },
)

/** A service tier that can change the price is read by the contract. */
const isFree = (rule: FieldRule, field: string, value: unknown): boolean =>
  rule(value) === null && readServiceTier('chat-completions', { [field]: value }).serviceTier === undefined

/** Facts of the fields that no finder looks for. */
interface OtherFields {
  /** Bytes of the prompt outside `messages`. */
  readonly bytes: number
  readonly thinkingTokens?: number
}

const NOTHING_SET: LooseObject = {}

/** Most fields of a usual request: they count for nothing here. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(
  [...Object.keys(shape), ...SETTINGS].filter(
    (field) =>
      !isThinkingField(field) &&
      !isPromptField('chat-completions', field) &&
      lookUpRule('chat-completions', field) === undefined,
  ),
)

/** Returns the rest of the fields; null where one has a value that it must not have. */
function readOtherFields(tape: Tape, format: unknown): OtherFields | null {
  const end = tape.nodeAfter(0)
  let bytes = 0
  let thinking = NOTHING_SET
  for (let name = 1; name < end; name = tape.nodeAfter(name + 1)) {
    const field = tape.readName(name)
    if (PLAIN_FIELDS.has(field)) continue
    // The contract counts the one, and finds the other.
    if (field === 'functions' || field === PREDICTION) return null
    if (isThinkingField(field)) thinking = { ...thinking, [field]: tape.readValue(name + 1) }
    const rule = lookUpRule('chat-completions', field)
    if (rule !== undefined && !isFree(rule, field, tape.readValue(name + 1))) return null
    if (!isPromptField('chat-completions', field) || tape.isMissing(name + 1)) continue
    if (isFormat(field) && !holdsSchema(field, format)) continue
    const { start, end: fieldEnd } = tape.readSpan(name + 1)
    bytes += fieldEnd - start
  }
  return thinking === NOTHING_SET ? { bytes } : { bytes, ...readThinking(thinking) }
}

const spanAt = (tape: Tape, value: number): FieldSpan | undefined =>
  value === 0 ? undefined : tape.readSpan(value)

/** Returns the settings of a request that its contract accepts. */
function readSettings(tape: Tape): ChatSettings {
  const { place } = REQUEST
  return {
    model: tape.foundValue(place.model),
    stream: tape.foundValue(place.stream),
    max_tokens: tape.foundValue(place.max_tokens),
    max_completion_tokens: tape.foundValue(place.max_completion_tokens),
    temperature: tape.foundValue(place.temperature),
    n: tape.foundValue(place.n),
    tool_choice: tape.foundValue(place.tool_choice),
    stream_options: tape.foundValue(place.stream_options),
    response_format: tape.foundValue(place.response_format),
    usage: tape.foundValue(place.usage),
    top_p: tape.foundValue(place.top_p),
    frequency_penalty: tape.foundValue(place.frequency_penalty),
    presence_penalty: tape.foundValue(place.presence_penalty),
    seed: tape.foundValue(place.seed),
    stop: tape.foundValue(place.stop),
    reasoning_effort: tape.foundValue(place.reasoning_effort),
    prompt_cache_key: tape.foundValue(place.prompt_cache_key),
    metadata: tape.foundValue(place.metadata),
  } as ChatSettings
}

/** Returns the facts of the request; null where it needs the full contract. */
export const readFastPathRequest = (body: Buffer): ReadChatRequest | null =>
  scanJson(body, DEEPEST, NAMES, requestOn)

function requestOn(tape: Tape): ReadChatRequest | null {
  if (tape.nodeAfter(0) > MAX_UNCOUNTED_NODES || !REQUEST.accepts(tape, 0)) return null
  const settings = readSettings(tape)
  const others = readOtherFields(tape, settings.response_format)
  if (others === null) return null
  const { place } = REQUEST
  if (!tape.isMissing(tape.found(place.web_search_options))) return null
  const conversation = tape.found(place.messages)
  const list = tape.found(place.tools)
  const tools = tape.isMissing(list) ? null : tape.countItems(list, isAny)
  if (tools !== null && tools > MAX_TOOLS) return null
  const conversationBytes = tape.readEnd(conversation) - tape.readStart(conversation)
  return {
    settings,
    messages: tape.countItems(conversation, isAny),
    tools,
    builtInTools: [],
    conversationBytes,
    promptBytes: conversationBytes + others.bytes,
    thinkingTokens: others.thinkingTokens,
    links: NO_LINKS,
    isLegacy: false,
    fields: {
      model: spanAt(tape, tape.found(place.model)),
      max_tokens: spanAt(tape, tape.found(place.max_tokens)),
      max_completion_tokens: spanAt(tape, tape.found(place.max_completion_tokens)),
      stream_options: spanAt(tape, tape.found(place.stream_options)),
      usage: spanAt(tape, tape.found(place.usage)),
      prediction: undefined,
    },
    open: tape.readStart(0),
  }
}
