/** Reads a request of the messages dialect, and refuses what the vendor would refuse. */

import type { Prompt } from '../../answers/script.ts'
import { isObject, parseJsonObject } from '../../dialect.ts'
import { findDirectives, readText } from '../../directives/grammar.ts'
import { checkSystem } from './blocks.ts'
import { checkCacheBreakpoints, checkConversation } from './conversation.ts'
import { invalid, numberWithin, strictObject } from './fields.ts'
import { type OtherModels, readOtherModels } from './other-models.ts'
import { readToolChoice, readTools } from './tools.ts'

const MIN_THINKING_TOKENS = 1024
const MIN_TOP_P_WHEN_THINKING = 0.95
const COUNTED_FIELDS = [
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'cache_control', 'mcp_servers'],
  ...['context_management', 'output_config', 'output_format', 'speed', 'simulate'],
]
const FIELDS = [
  ...COUNTED_FIELDS,
  ...['max_tokens', 'metadata', 'stop_sequences', 'stream', 'temperature', 'top_k', 'top_p'],
  ...['container', 'diagnostics', 'service_tier', 'inference_geo', 'fallbacks'],
]

export type MessagesRequest = {
  readonly model: string
  readonly stream: boolean
  readonly thinks: boolean
  /** Everything but the model, whose name has directives. */
  readonly prompt: Omit<Prompt, 'model'>
  readonly others: OtherModels
  readonly messageDirectives: string | null
  readonly bodyDirectives: unknown
}

/** @param counting true if its tokens are to be counted @throws {SimulatedFailure} 400 */
export function readMessagesRequest(bytes: Buffer, { counting }: { counting: boolean }): MessagesRequest {
  const body = parseJsonObject(bytes)
  for (const field of Object.keys(body)) {
    if (!(counting ? COUNTED_FIELDS : FIELDS).includes(field))
      throw invalid(`${field}: Extra inputs are not permitted`)
  }
  if (typeof body.model !== 'string' || body.model === '') throw invalid('model: Field required')
  const maxTokens = counting ? null : readMaxTokens(body)
  const thinking = readThinking(body.thinking, maxTokens)
  const tools = readTools(body.tools)
  const toolChoice = readToolChoice(body.tool_choice, tools)
  checkSystem(body.system)
  checkSampling(body, thinking !== 'off')
  if (thinking !== 'off' && toolChoice !== 'auto' && toolChoice !== 'none')
    throw invalid('Thinking may not be enabled when tool_choice forces tool use.')
  const hasTools = tools.functions.length > 0 || tools.searches
  // With adaptive thinking, a turn may begin without thinking.
  const thinksAlways = isObject(body.thinking) && body.thinking.type === 'enabled'
  checkConversation(body.messages, { thinks: thinksAlways, hasTools })
  checkCacheBreakpoints(body)
  const last = (body.messages as Record<string, unknown>[]).findLast(({ role }) => role !== 'system')
  const builtIns = tools.searches ? (['web_search'] as const) : []
  return {
    model: body.model,
    stream: body.stream === true,
    thinks: thinking !== 'off',
    prompt: {
      asked: readText(last?.content),
      json: JSON.stringify(body.messages) + (body.system === undefined ? '' : JSON.stringify(body.system)),
      ...{ seed: null, choices: 1, maxTokens, tools: tools.functions, toolChoice, builtIns, thinking },
      format: readFormat(body),
      stop: readStopSequences(body.stop_sequences),
      logprobs: null,
    },
    others: readOtherModels(body),
    messageDirectives: findDirectives(
      body.messages as unknown[],
      (turn) => isObject(turn) && turn.role === 'assistant',
    ),
    bodyDirectives: body.simulate,
  }
}

function readMaxTokens(body: Record<string, unknown>): number {
  const value = body.max_tokens
  if (value === undefined) throw invalid('max_tokens: Field required')
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw invalid('max_tokens: Input should be a valid integer')
  if (value < 1) throw invalid('max_tokens: must be greater than or equal to 1')
  return value
}

function readThinking(thinking: unknown, maxTokens: number | null): Prompt['thinking'] {
  if (thinking === undefined) return 'off'
  if (!isObject(thinking)) throw invalid('thinking: Input should be a valid dictionary')
  const shown = thinking.display === 'omitted' ? 'hidden' : 'shown'
  switch (thinking.type) {
    case 'disabled':
      strictObject(thinking, 'thinking.disabled', ['type'])
      return 'off'
    case 'adaptive':
      strictObject(thinking, 'thinking.adaptive', ['type', 'display'])
      return shown
    case 'enabled': {
      strictObject(thinking, 'thinking.enabled', ['type', 'budget_tokens', 'display'])
      const budget = thinking.budget_tokens
      if (budget === undefined) throw invalid('thinking.enabled.budget_tokens: Field required')
      if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < MIN_THINKING_TOKENS)
        throw invalid(
          `thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_THINKING_TOKENS}`,
        )
      if (maxTokens !== null && maxTokens <= budget)
        throw invalid('`max_tokens` must be greater than `thinking.budget_tokens`.')
      return shown
    }
    default:
      throw invalid(
        `thinking: Input tag '${thinking.type}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'`,
      )
  }
}

function checkSampling(body: Record<string, unknown>, thinks: boolean): void {
  const temperature = numberWithin(body, 'temperature', [0, 1])
  const topP = numberWithin(body, 'top_p', [0, 1])
  const topK = numberWithin(body, 'top_k', [0, Number.MAX_SAFE_INTEGER])
  if (!thinks) return
  if (temperature !== null && temperature !== 1)
    throw invalid('`temperature` may only be set to 1 when thinking is enabled.')
  if (topK !== null) throw invalid('`top_k` must be unset when thinking is enabled.')
  if (topP !== null && topP < MIN_TOP_P_WHEN_THINKING)
    throw invalid('`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.')
}

function readStopSequences(value: unknown): readonly string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw invalid('stop_sequences: Input should be a valid list')
  for (const [index, stop] of value.entries()) {
    if (typeof stop !== 'string') throw invalid(`stop_sequences.${index}: Input should be a valid string`)
    if (stop.trim() === '') throw invalid('stop_sequences: each stop sequence must contain non-whitespace')
  }
  return value as string[]
}

function readFormat(body: Record<string, unknown>): Prompt['format'] {
  const format = isObject(body.output_config) ? body.output_config.format : body.output_format
  return isObject(format) && format.type === 'json_schema' ? { schema: format.schema } : 'text'
}
