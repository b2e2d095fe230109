/** Reads a request of the chat-completions dialect: the fields that change the answer. */

import type { BuiltInTool } from '../../answers/built-in-tools.ts'
import { MAX_TOP_LOGPROBS } from '../../answers/logprobs.ts'
import type { FunctionTool, Prompt } from '../../answers/script.ts'
import { isObject, parseJsonObject, SimulatedFailure } from '../../dialect.ts'
import { findDirectives, readText } from '../../directives/grammar.ts'

const MAX_CHOICES = 16

export type ChatRequest = {
  readonly model: string
  readonly messages: readonly unknown[]
  readonly stream: boolean
  readonly hasStreamOptions: boolean
  readonly includeUsage: boolean
  readonly maxTokens: number | null
  readonly choices: number
  readonly seed: number | null
  readonly tools: readonly FunctionTool[]
  readonly toolChoice: Prompt['toolChoice']
  readonly format: Prompt['format']
  readonly stop: readonly string[]
  readonly logprobs: number | null
  readonly builtIns: readonly BuiltInTool[]
  /** The text of the last message of a user. */
  readonly asked: string
  /** The content of `[simulate: …]` after the last turn of the model. */
  readonly messageDirectives: string | null
  /** The field `simulate`. */
  readonly bodyDirectives: unknown
}

/** @throws {SimulatedFailure} 400, with the field at fault in `param`. */
export function readChatRequest(bytes: Buffer): ChatRequest {
  const body = parseJsonObject(bytes)
  if (typeof body.model !== 'string' || body.model === '')
    throw invalid('model', 'you must provide a model parameter')
  if (!Array.isArray(body.messages) || body.messages.length === 0) {
    throw invalid('messages', 'expected a non-empty array of messages')
  }
  const streamOptions = body.stream_options
  return {
    model: body.model,
    messages: body.messages,
    stream: body.stream === true,
    hasStreamOptions: isObject(streamOptions),
    includeUsage: isObject(streamOptions) && streamOptions.include_usage === true,
    maxTokens:
      wholeNumber(body, 'max_completion_tokens', Number.MAX_SAFE_INTEGER) ??
      wholeNumber(body, 'max_tokens', Number.MAX_SAFE_INTEGER),
    choices: wholeNumber(body, 'n', MAX_CHOICES) ?? 1,
    seed: typeof body.seed === 'number' ? body.seed : null,
    tools: readTools(body.tools),
    toolChoice: readToolChoice(body.tool_choice),
    format: readFormat(body.response_format),
    stop: [body.stop].flat().filter((sequence) => typeof sequence === 'string'),
    logprobs: readLogprobs(body),
    builtIns: readBuiltIns(body),
    asked: readText(readContent(body.messages.findLast(isOfUser))),
    messageDirectives: findDirectives(body.messages, (turn) => isObject(turn) && turn.role === 'assistant'),
    bodyDirectives: body.simulate,
  }
}

/** Returns the request in no dialect. */
export function readPrompt(chat: ChatRequest, model: string): Prompt {
  return { ...chat, model, json: JSON.stringify(chat.messages), thinking: 'off' }
}

function wholeNumber(body: Record<string, unknown>, field: string, max: number, min = 1): number | null {
  const value = body[field]
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw invalid(field, `expected a whole number from ${min} to ${max}`)
}

function readLogprobs(body: Record<string, unknown>): number | null {
  const top = wholeNumber(body, 'top_logprobs', MAX_TOP_LOGPROBS, 0) ?? 0
  return body.logprobs === true ? top : null
}

function readTools(tools: unknown): FunctionTool[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool) => {
    const described: unknown = isObject(tool) && tool.type === 'function' ? tool.function : null
    if (!isObject(described) || typeof described.name !== 'string') return []
    return [{ name: described.name, schema: described.parameters }]
  })
}

/** Requested as a tool of that type, or, for a search, by its options. */
function readBuiltIns(body: Record<string, unknown>): BuiltInTool[] {
  const tools: readonly unknown[] = Array.isArray(body.tools) ? body.tools : []
  const types = tools.map((tool) => (isObject(tool) ? tool.type : null))
  const searches = types.includes('web_search') || isObject(body.web_search_options)
  return [
    ...(searches ? (['web_search'] as const) : []),
    ...(types.includes('image_generation') ? (['image_generation'] as const) : []),
  ]
}

const isOfUser = (message: unknown): boolean => isObject(message) && message.role === 'user'

function readContent(message: unknown): unknown {
  return isObject(message) ? message.content : null
}

function readToolChoice(choice: unknown): Prompt['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice
  const named: unknown = isObject(choice) ? choice.function : null
  return isObject(named) && typeof named.name === 'string' ? { name: named.name } : 'auto'
}

function readFormat(format: unknown): Prompt['format'] {
  if (!isObject(format)) return 'text'
  if (format.type === 'json_schema' && isObject(format.json_schema))
    return { schema: format.json_schema.schema }
  return format.type === 'json_object' ? 'json' : 'text'
}

function invalid(field: string, expected: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', `Invalid value for '${field}': ${expected}.`, {
    param: field,
  })
}
