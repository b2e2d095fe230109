/**
 * Knows the chat-completions requests that keep to their contract by a look at the fields that it names. The contract
 * is `chatCompletionsRequest`: it copies what it reads and explains what is wrong, which costs several times as much.
 * What is let through here it lets through as well; of anything else it has the last word.
 */
import {
  type ChatCompletionsRequest,
  MAX_CHOICES,
  MAX_TEMPERATURE,
  MAX_TOKEN_LIMIT,
  MESSAGE_ROLES,
} from '../../schemas/chat-completions.ts'
import { isObject } from './loose.ts'

const ROLES: ReadonlySet<unknown> = new Set(MESSAGE_ROLES)

const isTyped = (value: unknown): boolean => isObject(value) && typeof value.type === 'string'

const isInteger = (value: unknown, max: number): boolean =>
  value == null || (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max)

const isTemperature = (value: unknown): boolean =>
  value == null || (typeof value === 'number' && value >= 0 && value <= MAX_TEMPERATURE)

const isFlag = (value: unknown): boolean => value == null || typeof value === 'boolean'

const isContent = (value: unknown): boolean =>
  value == null || typeof value === 'string' || (Array.isArray(value) && value.every(isTyped))

const isMessage = (value: unknown): boolean =>
  isObject(value) && ROLES.has(value.role) && isContent(value.content)

const isConversation = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isMessage)

const isToolChoice = (value: unknown): boolean => value == null || typeof value === 'string' || isTyped(value)

export function isUsualChatRequest(value: unknown): value is ChatCompletionsRequest {
  if (!isObject(value)) return false
  const { model, tools, stream_options: options, response_format: format } = value
  return (
    typeof model === 'string' &&
    model !== '' &&
    isConversation(value.messages) &&
    isFlag(value.stream) &&
    isInteger(value.max_tokens, MAX_TOKEN_LIMIT) &&
    isInteger(value.max_completion_tokens, MAX_TOKEN_LIMIT) &&
    isTemperature(value.temperature) &&
    isInteger(value.n, MAX_CHOICES) &&
    (tools == null || (Array.isArray(tools) && tools.every(isTyped))) &&
    isToolChoice(value.tool_choice) &&
    (options == null || (isObject(options) && isFlag(options.include_usage))) &&
    (format == null || isTyped(format))
  )
}
