/**
 * Recognises valid chat-completions requests by their bytes. The contract is `chatCompletionsRequest`: it needs the
 * request parsed, copies the fields and explains errors, which costs many times as much. A request accepted here is
 * valid under the contract too; the contract decides on all others.
 */

import {
  type ChatCompletionsRequest,
  MAX_CHOICES,
  MAX_TEMPERATURE,
  MAX_TOKEN_LIMIT,
  MESSAGE_ROLES,
  streamOptions,
} from '../../../schemas/chat/chat-completions.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import type { FieldSpan } from '../../core/json/fields.ts'
import { namesIn } from '../../core/json/names.ts'
import {
  FieldFinder,
  KnownNames,
  type NodeTest,
  scanJson,
  type Tape,
  Words,
} from '../../core/json/scanner/tape.ts'
import { isObject, type LooseObject } from '../loose.ts'
import { MAX_TOOLS, MAX_UNCOUNTED_NODES } from '../request/counts.ts'
import { typeOf } from '../request/fast-path-items.ts'
import {
  type Rule as FieldRule,
  requestedTier,
  ruleOf,
  STORED_OBJECT_FIELDS,
} from '../request/foreign-fields.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'
import { LINK_FIELDS, type LinkedParts, NO_LINKS } from '../request/linked-parts.ts'
import { holdsSchema, isFormat, isPromptField } from '../request/prompt-fields.ts'
import { isThinkingField, thinkingOf } from '../request/thinking-tokens.ts'

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
> &
  Readonly<
    Partial<
      Record<
        'top_p' | 'frequency_penalty' | 'presence_penalty' | 'seed' | 'stop' | 'reasoning_effort',
        unknown
      >
    >
  >

/** The fields that are changed on the way to an upstream; undefined where one is absent. */
export type ChangedFields = Readonly<
  Record<'model' | 'max_tokens' | 'max_completion_tokens' | 'stream_options', FieldSpan | undefined>
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
  /** It offers legacy functions alone. */
  readonly isLegacy: boolean
  readonly fields: ChangedFields
  /** Index of the request's opening brace. */
  readonly open: number
}

/** Levels whose fields are read: the request, its messages, one of them, its content, a part of that. */
const DEEPEST = 5

const REQUEST = new FieldFinder([
  'model',
  'messages',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'n',
  'tools',
  'tool_choice',
  'web_search_options',
  'stream_options',
  'response_format',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'stop',
  'reasoning_effort',
])
const MESSAGE = new FieldFinder(['role', 'content', 'audio'])
const ROLES = new Words(MESSAGE_ROLES)
const NAMES = new KnownNames(namesIn(CHAT_COMPLETIONS_NAMES), [
  ...STORED_OBJECT_FIELDS,
  ...LINK_FIELDS,
  'input_audio',
])
/** The contract reads a tool of another type: the upstream may run it, and its settings may name a stored object. */
const isFunction: NodeTest = (tape, node) => tape.isOneOf(FUNCTION, typeOf(tape, node))
const FUNCTION = new Words(['function'])

/** Parts of another type may hold a link, under a name that is not watched: the contract counts them. */
const isPlainPart: NodeTest = (tape, node) => tape.isOneOf(PLAIN_PARTS, typeOf(tape, node))
const PLAIN_PARTS = new Words(['text', 'refusal'])
const isContent: NodeTest = (tape, node) =>
  tape.isMissing(node) || tape.isText(node) || tape.isListOf(node, isPlainPart)

const isMessage: NodeTest = (tape, node) =>
  tape.find(MESSAGE, node) &&
  tape.isOneOf(ROLES, tape.found(MESSAGE.place.role)) &&
  isContent(tape, tape.found(MESSAGE.place.content)) &&
  tape.isMissing(tape.found(MESSAGE.place.audio))

/** A service tier that can change the price is read by the contract. */
const isFree = (rule: FieldRule, field: string, value: unknown): boolean =>
  rule(value) === null && requestedTier('chat-completions', { [field]: value }).serviceTier === undefined

/** Facts of the fields that no finder looks for. */
interface OtherFields {
  /** Bytes of the prompt outside `messages`. */
  readonly bytes: number
  readonly thinkingTokens?: number
}

const NOTHING_SET: LooseObject = {}

/** Returns the rest of the fields; null where one has a value that it must not have. */
function readOtherFields(tape: Tape, format: unknown): OtherFields | null {
  const end = tape.nodeAfter(0)
  let bytes = 0
  let thinking = NOTHING_SET
  for (let name = 1; name < end; name = tape.nodeAfter(name + 1)) {
    const field = tape.nameAt(name)
    // They are counted by the contract.
    if (field === 'functions') return null
    if (isThinkingField(field)) thinking = { ...thinking, [field]: tape.valueAt(name + 1) }
    const rule = ruleOf('chat-completions', field)
    if (rule !== undefined && !isFree(rule, field, tape.valueAt(name + 1))) return null
    if (!isPromptField('chat-completions', field) || tape.isMissing(name + 1)) continue
    if (isFormat(field) && !holdsSchema(field, format)) continue
    const { start, end: fieldEnd } = tape.spanOf(name + 1)
    bytes += fieldEnd - start
  }
  return thinking === NOTHING_SET ? { bytes } : { bytes, ...thinkingOf(thinking) }
}

const isInteger = (value: unknown, max: number): boolean =>
  value == null || (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max)

const isTemperature = (value: unknown): boolean =>
  value == null || (typeof value === 'number' && value >= 0 && value <= MAX_TEMPERATURE)

const isFlag = (value: unknown): boolean => value == null || typeof value === 'boolean'

const isTypedObject = (value: unknown): boolean => isObject(value) && typeof value.type === 'string'

const STREAM_OPTIONS: ReadonlySet<string> = new Set(Object.keys(streamOptions.shape))

const isStreamOptions = (options: unknown): boolean =>
  isObject(options) && Object.keys(options).every((name) => STREAM_OPTIONS.has(name) && isFlag(options[name]))

const isToolChoice = (value: unknown): boolean =>
  value == null || typeof value === 'string' || isTypedObject(value)

const hasFastPathSettings = (
  settings: Partial<Record<keyof ChatSettings, unknown>>,
): settings is ChatSettings =>
  typeof settings.model === 'string' &&
  settings.model !== '' &&
  isFlag(settings.stream) &&
  isInteger(settings.max_tokens, MAX_TOKEN_LIMIT) &&
  isInteger(settings.max_completion_tokens, MAX_TOKEN_LIMIT) &&
  isTemperature(settings.temperature) &&
  isInteger(settings.n, MAX_CHOICES) &&
  isToolChoice(settings.tool_choice) &&
  (settings.stream_options == null || isStreamOptions(settings.stream_options)) &&
  (settings.response_format == null || isTypedObject(settings.response_format))

const spanAt = (tape: Tape, value: number): FieldSpan | undefined =>
  value === 0 ? undefined : tape.spanOf(value)

function foundSettings(tape: Tape): Partial<Record<keyof ChatSettings, unknown>> {
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
    top_p: tape.foundValue(place.top_p),
    frequency_penalty: tape.foundValue(place.frequency_penalty),
    presence_penalty: tape.foundValue(place.presence_penalty),
    seed: tape.foundValue(place.seed),
    stop: tape.foundValue(place.stop),
    reasoning_effort: tape.foundValue(place.reasoning_effort),
  }
}

/** Returns the facts of the request; null where it needs the full contract. */
export const readFastPathRequest = (body: Buffer): ReadChatRequest | null =>
  scanJson(body, DEEPEST, NAMES, requestOn)

function requestOn(tape: Tape): ReadChatRequest | null {
  if (tape.nodeAfter(0) > MAX_UNCOUNTED_NODES || !tape.find(REQUEST, 0)) return null
  const settings = foundSettings(tape)
  if (!hasFastPathSettings(settings)) return null
  const others = readOtherFields(tape, settings.response_format)
  if (others === null) return null
  const { place } = REQUEST
  if (!tape.isMissing(tape.found(place.web_search_options))) return null
  const conversation = tape.found(place.messages)
  const messages = tape.countOf(conversation, isMessage)
  if (messages < 1) return null
  const list = tape.found(place.tools)
  const tools = tape.isMissing(list) ? null : tape.countOf(list, isFunction)
  if (tools === -1 || (tools !== null && tools > MAX_TOOLS)) return null
  const conversationBytes = tape.endOf(conversation) - tape.startOf(conversation)
  const { bytes, ...thinking } = others
  return {
    settings,
    messages,
    tools,
    builtInTools: [],
    conversationBytes,
    promptBytes: conversationBytes + bytes,
    ...thinking,
    links: NO_LINKS,
    isLegacy: false,
    fields: {
      model: spanAt(tape, tape.found(place.model)),
      max_tokens: spanAt(tape, tape.found(place.max_tokens)),
      max_completion_tokens: spanAt(tape, tape.found(place.max_completion_tokens)),
      stream_options: spanAt(tape, tape.found(place.stream_options)),
    },
    open: tape.startOf(0),
  }
}
