/** Rewrites requests of the chat-completions protocol for upstreams that refuse what others take. */
import { createHash } from 'node:crypto'
import type { Fields } from '../provider.ts'

/** Fields of a request that Mistral knows. It refuses every other one. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'temperature',
  'top_p',
  'max_tokens',
  'stream',
  'stop',
  'random_seed',
  'response_format',
  'tools',
  'tool_choice',
  'presence_penalty',
  'frequency_penalty',
  'n',
  'prediction',
  'parallel_tool_calls',
  'prompt_mode',
  'reasoning_effort',
  'safe_prompt',
  'metadata',
])

/** The same of a message, by its role. */
const MESSAGE_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  system: new Set(['role', 'content']),
  user: new Set(['role', 'content']),
  assistant: new Set(['role', 'content', 'tool_calls', 'prefix']),
  tool: new Set(['role', 'content', 'tool_call_id', 'name']),
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const keepFields = (fields: Fields, known: ReadonlySet<string>): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => known.has(name)))

export function keepKnownFields(request: Fields): Fields {
  const { seed } = request
  const known = keepFields(request, REQUEST_FIELDS)
  const { messages } = known
  return {
    ...known,
    // The same field by another name.
    ...(seed != null && known.random_seed === undefined && { random_seed: seed }),
    ...(Array.isArray(messages) && { messages: messages.map(keepKnownMessageFields) }),
  }
}

function keepKnownMessageFields(message: unknown): unknown {
  if (!isFields(message)) return message
  const role = message.role === 'developer' ? 'system' : String(message.role)
  const fields = MESSAGE_FIELDS[role]
  return fields === undefined ? message : keepFields({ ...message, role }, fields)
}

const TOOL_CALL_ID_CHARS = 9
const TOOL_CALL_ID = /^[A-Za-z0-9]{9}$/

/** Returns an id in the upstream's form: the same one for the same id, so that a call and its result agree. */
function shortenId(id: unknown): unknown {
  if (typeof id !== 'string' || TOOL_CALL_ID.test(id)) return id
  return createHash('sha256').update(id).digest('hex').slice(0, TOOL_CALL_ID_CHARS)
}

export function withShortIds(request: Fields): Fields {
  const { messages } = request
  if (!Array.isArray(messages)) return request
  return {
    ...request,
    messages: messages.map((message) => (isFields(message) ? shortenIds(message) : message)),
  }
}

function shortenIds(message: Fields): Fields {
  const { tool_calls: calls, tool_call_id: id } = message
  return {
    ...message,
    ...(id !== undefined && { tool_call_id: shortenId(id) }),
    ...(Array.isArray(calls) && {
      tool_calls: calls.map((call) => (isFields(call) ? { ...call, id: shortenId(call.id) } : call)),
    }),
  }
}
