/**
 * Knows the chat-completions requests that keep to their contract by their bytes. The contract is
 * `chatCompletionsRequest`: it needs the request parsed, copies what it reads and explains what is wrong, which costs
 * many times as much. What is let through here it lets through as well; of anything else it has the last word.
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
  endOf,
  FieldFinder,
  foundIn,
  KnownNames,
  nameAt,
  nodeAfter,
  scanJson,
  spanOf,
  startOf,
  valueAt,
  Words,
} from '../../core/json/scanner/tape.ts'
import { isObject } from '../loose.ts'
import { MAX_TOOLS, MAX_UNCOUNTED_NODES } from '../request/counts.ts'
import { countOf, isListOf, isMissing, isText, isTyped, typeOf } from '../request/fast-path-items.ts'
import { ruleOf, STORED_OBJECT_FIELDS } from '../request/foreign-fields.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'
import { LINK_FIELDS, type LinkedParts, NO_LINKS } from '../request/linked-parts.ts'
import { holdsSchema, isFormat, isPromptField } from '../request/prompt-fields.ts'
import { serverToolsOf } from '../request/tools.ts'

/** What the gateway reads of a request, its messages and tools aside. */
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
  /** How many. */
  readonly messages: number
  /** How many; null where there is no list of them. */
  readonly tools: number | null
  readonly builtInTools: readonly ServerTool[]
  /** Bytes of `messages` and of other fields that upstreams make part of the prompt, as they were written. */
  readonly promptBytes: number
  readonly links: LinkedParts
  readonly fields: ChangedFields
  /** Where the request's brace opens. */
  readonly open: number
}

/** The request, its messages, one of them, its content, a part of that: whose fields are read. */
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
const FUNCTION = new Words(['function'])
/** A tool that a server of the client's runs: the contract reads its link. */
const CALLS_SERVER: ServerTool = 'mcp'

/** Parts of another type may hold a link, under a name that is not watched: the contract counts them. */
const isPlainPart = (node: number): boolean => PLAIN_PARTS.has(typeOf(node))
const PLAIN_PARTS = new Words(['text', 'refusal'])
const isContent = (node: number): boolean => isMissing(node) || isText(node) || isListOf(node, isPlainPart)

const isMessage = (node: number): boolean =>
  MESSAGE.find(node) &&
  ROLES.has(foundIn(MESSAGE.place.role)) &&
  isContent(foundIn(MESSAGE.place.content)) &&
  isMissing(foundIn(MESSAGE.place.audio))

const NO_TOOLS: readonly ServerTool[] = []

/** @throws Failure `tool_not_supported` */
function builtInTools(list: number): readonly ServerTool[] {
  const types: string[] = []
  const end = nodeAfter(list)
  for (let item = list + 1; item < end; item = nodeAfter(item)) {
    const type = typeOf(item)
    if (!FUNCTION.has(type)) types.push(valueAt(type) as string)
  }
  return types.length === 0 ? NO_TOOLS : serverToolsOf('chat-completions', types)
}

const NOT_FREE = -1

/**
 * Returns how many bytes of the prompt are outside `messages`; `NOT_FREE` where a field that is not looked for may not
 * hold what it holds.
 */
function bytesBesideMessages(format: unknown): number {
  const end = nodeAfter(0)
  let bytes = 0
  for (let name = 1; name < end; name = nodeAfter(name + 1)) {
    const field = nameAt(name)
    // They are counted by the contract.
    if (field === 'functions') return NOT_FREE
    const rule = ruleOf('chat-completions', field)
    if (rule !== undefined && rule(valueAt(name + 1)) !== null) return NOT_FREE
    if (!isPromptField('chat-completions', field) || isMissing(name + 1)) continue
    if (isFormat(field) && !holdsSchema(field, format)) continue
    const { start, end: fieldEnd } = spanOf(name + 1)
    bytes += fieldEnd - start
  }
  return bytes
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

const spanAt = (value: number): FieldSpan | undefined => (value === 0 ? undefined : spanOf(value))

function foundSettings(): Partial<Record<keyof ChatSettings, unknown>> {
  const { place } = REQUEST
  return {
    model: valueAt(foundIn(place.model)),
    stream: valueAt(foundIn(place.stream)),
    max_tokens: valueAt(foundIn(place.max_tokens)),
    max_completion_tokens: valueAt(foundIn(place.max_completion_tokens)),
    temperature: valueAt(foundIn(place.temperature)),
    n: valueAt(foundIn(place.n)),
    tool_choice: valueAt(foundIn(place.tool_choice)),
    stream_options: valueAt(foundIn(place.stream_options)),
    response_format: valueAt(foundIn(place.response_format)),
    top_p: valueAt(foundIn(place.top_p)),
    frequency_penalty: valueAt(foundIn(place.frequency_penalty)),
    presence_penalty: valueAt(foundIn(place.presence_penalty)),
    seed: valueAt(foundIn(place.seed)),
    stop: valueAt(foundIn(place.stop)),
    reasoning_effort: valueAt(foundIn(place.reasoning_effort)),
  }
}

/**
 * What the request says; null for one that is not plainly as its contract wants it.
 * @throws Failure `tool_not_supported`
 */
export function readFastPathRequest(body: Buffer): ReadChatRequest | null {
  if (!scanJson(body, DEEPEST, NAMES) || nodeAfter(0) > MAX_UNCOUNTED_NODES || !REQUEST.find(0)) return null
  const settings = foundSettings()
  if (!hasFastPathSettings(settings)) return null
  const besideMessages = bytesBesideMessages(settings.response_format)
  if (besideMessages === NOT_FREE) return null
  const { place } = REQUEST
  if (!isMissing(foundIn(place.web_search_options))) return null
  const conversation = foundIn(place.messages)
  const messages = countOf(conversation, isMessage)
  if (messages < 1) return null
  const list = foundIn(place.tools)
  const tools = isMissing(list) ? null : countOf(list, isTyped)
  if (tools === -1 || (tools !== null && tools > MAX_TOOLS)) return null
  const serverTools = tools === null ? NO_TOOLS : builtInTools(list)
  if (serverTools.includes(CALLS_SERVER)) return null
  return {
    settings,
    messages,
    tools,
    builtInTools: serverTools,
    promptBytes: endOf(conversation) - startOf(conversation) + besideMessages,
    links: NO_LINKS,
    fields: {
      model: spanAt(foundIn(place.model)),
      max_tokens: spanAt(foundIn(place.max_tokens)),
      max_completion_tokens: spanAt(foundIn(place.max_completion_tokens)),
      stream_options: spanAt(foundIn(place.stream_options)),
    },
    open: startOf(0),
  }
}
