/**
 * Tokens of reasoning that a request asks for, in any of the forms of its clients and upstreams. Upstreams differ in
 * whether these count towards the output limit, so the worst case of a call counts them next to it. See
 * docs/api-rules.md, "Pre-charge".
 */
import { roundRawNumber } from '../../core/json/exact.ts'
import { isObject, type LooseObject, toList } from '../loose.ts'

/** Top-level fields that set the depth of reasoning, or hold settings of an upstream that do. */
const FIELDS = [
  ...['thinking', 'reasoning', 'reasoning_effort', 'enable_thinking', 'enable_reasoning', 'output_config'],
  ...['thinking_budget', 'thinking_config', 'thinkingConfig', 'thinking_token_budget', 'reasoning_budget'],
  ...['max_thinking_tokens', 'max_reasoning_tokens', 'google', 'chat_template_kwargs'],
] as const
const FIELD_NAMES: ReadonlySet<string> = new Set(FIELDS)
export const isThinkingField = (name: string): boolean => FIELD_NAMES.has(name)

/** The most that upstreams reason for a word; the largest budget that they take otherwise. */
const EFFORT_TOKENS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1024,
  low: 4096,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
}
const DEFAULT_TOKENS = EFFORT_TOKENS.medium!
/** Of an unknown word, and where the depth is left to the model. */
const MOST_TOKENS = EFFORT_TOKENS.max!
/** No request is taken for more: the sum stays a whole number. */
const MAX_BUDGET_TOKENS = 1_000_000_000

const BUDGET = /^(budgettokens|tokenbudget|(thinking|reasoning)(token)?budget|max(thinking|reasoning)tokens)$/
const EFFORT = /^((reasoning)?effort|(thinking)?level)$/
const SWITCH = /^(thinking|reasoning|enabled|enable(thinking|reasoning))$/
const LIMITED = /^(thinking|reasoning)$/
/** Deep enough for `google.thinking_config.thinking_budget`. */
const DEEPEST = 4

const plain = (name: string): string => name.replaceAll('_', '').toLowerCase()

/** A negative budget leaves the depth to the model. */
const readBudget = (tokens: number): number =>
  tokens < 0 ? MOST_TOKENS : Math.min(Math.ceil(tokens), MAX_BUDGET_TOKENS)

function readEffort(word: string): number {
  const known = word.toLowerCase()
  return Object.hasOwn(EFFORT_TOKENS, known) ? EFFORT_TOKENS[known]! : MOST_TOKENS
}

/** Returns the tokens that one field asks for. @param around the name of the object that it is in */
function readTokens(name: string, given: unknown, around: string, depth: number): number {
  const value = roundRawNumber(given)
  if (typeof value === 'number') {
    const isBudget = BUDGET.test(name) || (name === 'maxtokens' && LIMITED.test(around))
    return isBudget ? readBudget(value) : 0
  }
  if (typeof value === 'string') return EFFORT.test(name) ? readEffort(value) : 0
  if (value === true) return SWITCH.test(name) ? DEFAULT_TOKENS : 0
  return isObject(value) && depth > 0 ? readTokensInside(value, name, depth - 1) : 0
}

function readTokensInside(settings: LooseObject, around: string, depth: number): number {
  const { type, enabled } = settings
  if (type === 'disabled' || enabled === false) return 0
  let most = type === 'adaptive' || type === 'auto' ? MOST_TOKENS : 0
  for (const [name, value] of Object.entries(settings))
    most = Math.max(most, readTokens(plain(name), value, around, depth))
  return most === 0 && type === 'enabled' ? DEFAULT_TOKENS : most
}

/** Returns the field of a call; nothing where its request asks for no reasoning. @param settings its top-level fields */
export function readThinking(settings: LooseObject): { thinkingTokens?: number } {
  let most = 0
  for (const field of FIELDS) {
    const value = settings[field]
    if (value != null) most = Math.max(most, readTokens(plain(field), value, '', DEEPEST))
  }
  return most === 0 ? {} : { thinkingTokens: most }
}

/** The same of messages, among which may be some that set the effort of the answer. */
export function readMostThinking(request: LooseObject, messages: unknown): { thinkingTokens?: number } {
  const found = [request, ...toList(messages).filter(isObject)].map(
    (settings) => readThinking(settings).thinkingTokens ?? 0,
  )
  const most = found.reduce((a, b) => Math.max(a, b), 0)
  return most === 0 ? {} : { thinkingTokens: most }
}
