/**
 * Reads the depth of reasoning that a chat-completions request wants. Clients use one of several forms: the protocol's
 * own `reasoning_effort`, `reasoning` and `thinking` as in other gateways and vendors, `enable_thinking` with
 * `thinking_budget`.
 */

import type { ReasoningDepth, Setting, WantedReasoning } from '../../../../schemas/chat/conversation.ts'
import { isObject, type LooseObject, toFields } from '../../loose.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'

type Depth = ReasoningDepth

export const THINKING_FIELDS = [
  'thinking',
  'reasoning',
  'reasoning_effort',
  'enable_thinking',
  'thinking_budget',
  'include_reasoning',
] as const

export const DEFAULT_EFFORT = 'medium'

/** True for a field that is absent, or an object whose fields are: it leaves everything as it is without it. */
const isUnset = (value: unknown): boolean =>
  value == null || (isObject(value) && Object.values(value).every((inner) => inner == null))

const isBudget = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const toBudget = (tokens: unknown): Depth =>
  isBudget(tokens)
    ? tokens === 0
      ? { type: 'off' }
      : { type: 'budget', tokens }
    : { type: 'effort', effort: DEFAULT_EFFORT }

const toEffort = (effort: string): Depth => (effort === 'none' ? { type: 'off' } : { type: 'effort', effort })

/** Each returns null for a value that it does not understand. */
const READERS: readonly (readonly [field: string, read: (request: LooseObject) => Depth | null])[] = [
  ['thinking', ({ thinking }) => (isObject(thinking) ? vendorDepth(thinking) : null)],
  ['reasoning', ({ reasoning }) => (isObject(reasoning) ? reasoningDepth(reasoning) : null)],
  [
    'reasoning_effort',
    ({ reasoning_effort: effort }) => (typeof effort === 'string' ? toEffort(effort) : null),
  ],
  [
    'enable_thinking',
    ({ enable_thinking: isOn, thinking_budget: budget }) =>
      isOn === false ? { type: 'off' } : isOn === true ? toBudget(budget) : null,
  ],
  ['thinking_budget', ({ thinking_budget: budget }) => (isBudget(budget) ? toBudget(budget) : null)],
]

function vendorDepth({ type, budget_tokens: tokens }: LooseObject): Depth | null {
  // Some models of the messages protocol always reason between calls of tools: this is their least.
  if (type === 'disabled' || type === 'between_tools') return { type: 'off' }
  if (type === 'adaptive' || type === 'auto') return { type: 'adaptive' }
  return type === 'enabled' ? toBudget(tokens) : null
}

function reasoningDepth({ effort, max_tokens: tokens, enabled, exclude }: LooseObject): Depth | null {
  if (enabled === false) return { type: 'off' }
  if (typeof effort === 'string') return toEffort(effort)
  if (isBudget(tokens)) return toBudget(tokens)
  // It only sets how reasoning is shown, and requests none.
  return enabled === true || exclude === undefined ? { type: 'effort', effort: DEFAULT_EFFORT } : null
}

/**
 * Returns the wish; undefined where the request leaves it to the model. Adds to `dropped` the duplicates and the fields
 * that cannot be read.
 */
export function readWantedThinking(
  request: LooseObject,
  dropped: DroppedFields,
): Setting<WantedReasoning> | undefined {
  const { reasoning, include_reasoning: isShown, thinking } = request
  const isHidden =
    isShown === false || toFields(reasoning).exclude === true || toFields(thinking).display === 'omitted'
  let wanted: Setting<WantedReasoning> | undefined
  for (const [field, read] of READERS) {
    if (isUnset(request[field])) continue
    if (field === 'thinking_budget' && wanted?.field === 'enable_thinking') continue
    const depth = read(request)
    if (wanted !== undefined) dropped.add(field, `${wanted.field} goes before it`)
    else if (depth !== null) wanted = { field, value: { depth, isHidden } }
    else if (!(isHidden && field === 'reasoning')) dropped.add(field)
  }
  return wanted
}
