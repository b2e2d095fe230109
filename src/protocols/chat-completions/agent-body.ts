/**
 * Builds an agent's body from a client's chat-completions body: the persona first, the model and the tools of the
 * agent, knowledge before the latest user message. The client's other fields stay unchanged. See docs/api-rules.md,
 * "Agents".
 */
import { Buffer } from 'node:buffer'
import { AGENT_TOOLS, type AgentFile } from '../../../schemas/accounts/agent.ts'
import { chatCompletionsRequest } from '../../../schemas/chat/chat-completions.ts'
import { Failure } from '../../../schemas/failure.ts'
import { scanItems } from '../../core/json/scanner/tape.ts'
import { cutField, type FieldSpan } from '../../core/json/splice.ts'
import { toFields, toText } from '../loose.ts'
import { readJsonFields } from '../request/client-json.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'

/**
 * Fields that a client may send to an agent; all others are removed. So no field that an upstream reads for tools,
 * another model or a price gets past the agent. `messages` are rewritten.
 */
const CLIENTS: ReadonlySet<string> = new Set([
  ...['messages', 'stream', 'stream_options', 'response_format', 'n', 'stop', 'seed'],
  ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'top_k', 'min_p'],
  ...['frequency_penalty', 'presence_penalty', 'repetition_penalty'],
  ...['logit_bias', 'logprobs', 'top_logprobs', 'modalities', 'audio', 'verbosity'],
  ...['reasoning_effort', 'reasoning', 'include_reasoning', 'thinking', 'enable_thinking', 'thinking_budget'],
  ...['user', 'safety_identifier', 'metadata', 'store', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_retention'],
])
const STREAMING: ReadonlySet<string> = new Set(['stream', 'stream_options'])
const IMAGE_PARTS: ReadonlySet<unknown> = new Set(['image_url', 'input_image', 'image'])
const TEXT_PARTS: ReadonlySet<unknown> = new Set(['text', 'input_text'])
const COMMA = Buffer.from(',')

const clientRequest = chatCompletionsRequest.omit({ model: true, tools: true, tool_choice: true })

interface AgentRequest {
  readonly body: Buffer
  readonly fields: ReadonlyMap<string, FieldSpan>
  /** Each message as the client wrote it. */
  readonly messages: readonly Buffer[]
  /** Which of them is the latest of role user. */
  readonly latest: number
  /** The text of that one; empty where it has none. */
  readonly question: string
  readonly hasImages: boolean
  readonly setsTemperature: boolean
  readonly isStream: boolean
}

/** @throws Failure `invalid_request` with a message that names the field */
export function readAgentRequest(body: Buffer): AgentRequest {
  const { request, fields } = readJsonFields(clientRequest, body, CHAT_COMPLETIONS_NAMES)
  const { start, end } = fields.get('messages')!
  const latest = request.messages.findLastIndex(({ role }) => role === 'user')
  if (latest < 0) throw new Failure('invalid_request', "Field 'messages' holds no message of role user.")
  return {
    body,
    fields,
    messages: scanItems(body.subarray(start, end)),
    latest,
    question: readText(request.messages[latest]!.content),
    hasImages: request.messages.some(({ content }) => hasImage(content)),
    setsTemperature: request.temperature != null,
    isStream: request.stream === true,
  }
}

/** Returns whether a whole answer is put together from a stream: built-in tools work only in streams. */
export const assemblesAnswer = ({ isStream }: AgentRequest, file: AgentFile): boolean =>
  !isStream && AGENT_TOOLS.some((tool) => file[tool])

const toParts = (content: unknown): readonly unknown[] => (Array.isArray(content) ? content : [])

const readText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : toParts(content)
        .map(toFields)
        .filter(({ type }) => TEXT_PARTS.has(type))
        .map(({ text }) => toText(text))
        .join('\n')

const hasImage = (content: unknown): boolean =>
  toParts(content).some((part) => IMAGE_PARTS.has(toFields(part).type))

/** Returns a field of an object as JSON. */
export const writeField = (name: string, value: unknown): Buffer =>
  Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}`)

const joinWithCommas = (pieces: readonly Buffer[]): Buffer[] =>
  pieces.flatMap((piece, index) => (index === 0 ? [piece] : [COMMA, piece]))

/** Returns an object of these fields. */
export const joinFields = (fields: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from('{'), ...joinWithCommas(fields), Buffer.from('}')])

/**
 * Returns the messages.
 * @param knowledge text of a message before the latest one of the user; null: none
 */
function messagesField(
  { messages, latest }: AgentRequest,
  persona: string,
  knowledge: string | null,
): Buffer {
  const message = (role: 'system' | 'user', content: string) => Buffer.from(JSON.stringify({ role, content }))
  const all = [
    message('system', persona),
    ...messages.slice(0, latest),
    ...(knowledge === null ? [] : [message('user', knowledge)]),
    ...messages.slice(latest),
  ]
  return Buffer.concat([Buffer.from('"messages":['), ...joinWithCommas(all), Buffer.from(']')])
}

/** Returns the body for the rest of the gateway, and for the upstream. */
export function agentBody(request: AgentRequest, file: AgentFile, knowledge: string | null): Buffer {
  const { body, fields, setsTemperature } = request
  const isAssembled = assemblesAnswer(request, file)
  const ownTemperature = setsTemperature ? null : file.temperature
  const tools = AGENT_TOOLS.filter((tool) => file[tool]).map((type) => ({ type }))
  const kept = [...fields].flatMap(([name, span]) => {
    if (!CLIENTS.has(name) || (name === 'temperature' && ownTemperature !== null)) return []
    if (isAssembled && STREAMING.has(name)) return []
    return name === 'messages' ? [messagesField(request, file.persona, knowledge)] : [cutField(body, span)]
  })
  const all = [
    writeField('model', file.model),
    ...kept,
    ...(ownTemperature === null ? [] : [writeField('temperature', ownTemperature)]),
    ...(tools.length === 0 ? [] : [writeField('tools', tools)]),
    ...(isAssembled
      ? [writeField('stream', true), writeField('stream_options', { include_usage: true })]
      : []),
  ]
  return joinFields(all)
}
