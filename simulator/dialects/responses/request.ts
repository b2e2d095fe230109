/** Reads a request of the responses dialect, and refuses what the vendor would refuse. */

import { MAX_TOP_LOGPROBS } from '../../answers/logprobs.ts'
import type { Prompt } from '../../answers/script.ts'
import { isObject, parseJsonObject } from '../../dialect.ts'
import { findDirectives, readText } from '../../directives/grammar.ts'
import type { World } from '../../world.ts'
import { conversationNamed } from './conversations.ts'
import { checkInput, invalid, missing } from './input.ts'
import type { Conversation, KeptResponse } from './kept.ts'
import { readToolChoice, readTools } from './tools.ts'

const MIN_OUTPUT_TOKENS = 16
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const FIELDS = [
  ...[
    'background',
    'client_metadata',
    'context_management',
    'conversation',
    'include',
    'input',
    'instructions',
  ],
  ...['max_output_tokens', 'max_tool_calls', 'metadata', 'model', 'parallel_tool_calls'],
  ...['previous_response_id', 'prompt', 'prompt_cache_key', 'prompt_cache_retention', 'reasoning'],
  ...['safety_identifier', 'service_tier', 'simulate', 'store', 'stream', 'stream_options', 'temperature'],
  ...['text', 'tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'user'],
  ...['frequency_penalty', 'presence_penalty'],
]
const SAMPLING: readonly (readonly [field: string, min: number, max: number])[] = [
  ['temperature', 0, 2],
  ['top_p', 0, 1],
  ['frequency_penalty', -2, 2],
  ['presence_penalty', -2, 2],
]

export type ResponsesRequest = {
  readonly model: string
  readonly stream: boolean
  readonly isInputString: boolean
  readonly hasInstructions: boolean
  /** True if reasoning comes with content that only the provider can read. */
  readonly sealsReasoning: boolean
  readonly prompt: Omit<Prompt, 'model'>
  /** True if the response is kept. */
  readonly isStored: boolean
  readonly isBackground: boolean
  /** The conversation that it continues; null without one. */
  readonly conversation: Conversation | null
  /** Each item with its type, as the vendor gives items back. */
  readonly input: readonly unknown[]
  /** Request fields that the answer repeats. */
  readonly repeated: Record<string, unknown>
  readonly messageDirectives: string | null
  readonly bodyDirectives: unknown
}

/** @throws {SimulatedFailure} 400, with the field at fault in `param`. */
export function readResponsesRequest(bytes: Buffer, world: World): ResponsesRequest {
  const body = parseJsonObject(bytes)
  for (const field of Object.keys(body)) {
    if (!FIELDS.includes(field)) throw invalid(field, `Unknown parameter: '${field}'.`)
  }
  if (typeof body.model !== 'string' || body.model === '') throw missing('model')
  const previous = findPrevious(body, world)
  const conversation = findConversation(body, world)
  checkInput(body.input, previous?.output ?? conversation?.items)
  checkFields(body)
  const tools = readTools(body.tools)
  const toolChoice = readToolChoice(body.tool_choice, tools)
  const last = Array.isArray(body.input) ? body.input.at(-1) : null
  return {
    model: body.model,
    stream: body.stream === true,
    isInputString: typeof body.input === 'string',
    hasInstructions: typeof body.instructions === 'string',
    sealsReasoning: Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content'),
    prompt: {
      asked: readText(isObject(last) ? last.content : body.input),
      json:
        (previous?.json ?? '') +
        (conversation === null ? '' : JSON.stringify(conversation.items)) +
        JSON.stringify(body.input) +
        (body.instructions ? JSON.stringify(body.instructions) : ''),
      ...{ seed: null, choices: 1, maxTokens: readMaxTokens(body.max_output_tokens) },
      ...{ tools: tools.functions, builtIns: tools.builtIns, toolChoice },
      format: readFormat(body.text),
      stop: [],
      logprobs: readLogprobs(body),
      thinking: readThinking(body.reasoning),
    },
    isStored: body.store !== false,
    isBackground: isBackground(body),
    conversation,
    input: (Array.isArray(body.input) ? body.input : [{ role: 'user', content: body.input }]).map((item) => ({
      type: 'message',
      ...item,
    })),
    repeated: {
      ...findRepeated(body),
      ...(conversation !== null && { conversation: { id: conversation.id } }),
    },
    messageDirectives: findDirectives([body.input].flat(), isModels),
    bodyDirectives: body.simulate,
  }
}

/** Returns whether the model made an item. */
const isModels = (item: unknown): boolean =>
  isObject(item) &&
  (item.role === 'assistant' || (typeof item.type === 'string' && /_call$|^reasoning$/.test(item.type)))

/** Returns the kept response that the request continues; null without one. */
function findPrevious(body: Record<string, unknown>, { responses }: World): KeptResponse | null {
  const id = body.previous_response_id ?? null
  if (id === null) return null
  const kept = responses.find(String(id))
  if (kept !== null) return kept
  throw invalid('previous_response_id', `Previous response with id '${id}' not found.`)
}

function findConversation(body: Record<string, unknown>, world: World): Conversation | null {
  const { conversation = null, previous_response_id: previous = null } = body
  if (conversation === null) return null
  if (previous !== null)
    throw invalid('conversation', "Mutually exclusive: 'previous_response_id' and 'conversation'.")
  return conversationNamed(world, String(isObject(conversation) ? conversation.id : conversation))
}

function isBackground(body: Record<string, unknown>): boolean {
  if (body.background !== true) return false
  if (body.store === false) throw invalid('background', 'Background mode requires store=true.')
  if (body.stream === true)
    throw invalid('stream', 'The simulated provider streams nothing in background mode.')
  return true
}

function checkFields(body: Record<string, unknown>): void {
  if (typeof (body.instructions ?? '') !== 'string')
    throw invalid('instructions', "Invalid type for 'instructions': expected a string.")
  for (const [field, min, max] of SAMPLING) {
    const value = body[field]
    if (value === undefined || value === null) continue
    if (typeof value !== 'number') throw invalid(field, `Invalid type for '${field}': expected a decimal.`)
    if (value < min || value > max)
      throw invalid(field, `Invalid '${field}': expected a value from ${min} to ${max}.`)
  }
}

function readMaxTokens(value: unknown): number | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw invalid('max_output_tokens', "Invalid type for 'max_output_tokens': expected an integer.")
  if (value >= MIN_OUTPUT_TOKENS) return value
  throw invalid(
    'max_output_tokens',
    `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${MIN_OUTPUT_TOKENS}, but got ${value} instead.`,
  )
}

/** Log probabilities come only if `include` names them. */
function readLogprobs({ include, top_logprobs: top = 0 }: Record<string, unknown>): number | null {
  const count = top ?? 0
  if (typeof count !== 'number' || !Number.isInteger(count))
    throw invalid('top_logprobs', "Invalid type for 'top_logprobs': expected an integer.")
  if (count < 0 || count > MAX_TOP_LOGPROBS)
    throw invalid('top_logprobs', `Invalid 'top_logprobs': expected a value from 0 to ${MAX_TOP_LOGPROBS}.`)
  return Array.isArray(include) && include.includes('message.output_text.logprobs') ? count : null
}

function readThinking(reasoning: unknown): Prompt['thinking'] {
  if (reasoning === undefined || reasoning === null) return 'off'
  if (!isObject(reasoning)) throw invalid('reasoning', "Invalid type for 'reasoning': expected an object.")
  const { effort = 'medium', summary } = reasoning
  if (effort !== null && !EFFORTS.includes(String(effort))) {
    const known = EFFORTS.map((name) => `'${name}'`).join(', ')
    throw invalid('reasoning.effort', `Invalid value: '${effort}'. Supported values are: ${known}.`)
  }
  if (effort === 'none') return 'off'
  return typeof summary === 'string' ? 'shown' : 'hidden'
}

function readFormat(text: unknown): Prompt['format'] {
  const format = isObject(text) ? text.format : null
  if (!isObject(format)) return 'text'
  if (format.type === 'json_schema') {
    if (typeof format.name !== 'string') throw missing('text.format.name')
    if (!isObject(format.schema)) throw missing('text.format.schema')
    return { schema: format.schema }
  }
  return format.type === 'json_object' ? 'json' : 'text'
}

function findRepeated(body: Record<string, unknown>): Record<string, unknown> {
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  return {
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { context: null, effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  }
}
