/** Builds `thinking` and `output_config.effort` of the messages protocol from the wish of a chat-completions request. */

import type { Depth, WantedThinking } from '../chat-completions/wanted-thinking.ts'
import type { LooseObject } from '../loose.ts'
import type { DroppedFields } from '../translate/dropped-fields.ts'
import type { ModelFamily } from './family.ts'

const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 4096,
  max: 4096,
}
/** Efforts that the protocol has under another name. */
const EFFORTS: Readonly<Record<string, string>> = { minimal: 'low' }
const MIN_BUDGET_TOKENS = 1024

export interface ThinkingTurn {
  /** A tool has to be called. */
  readonly isForced: boolean
  /** The turn to go on with began with signed thinking, or is a new one. */
  readonly mayThink: boolean
  /** `max_tokens`. */
  readonly limit: number
  readonly family: ModelFamily
}

export interface MessagesThinking {
  readonly thinking: LooseObject
  /** `output_config.effort`; null without one. */
  readonly effort: string | null
}

/** Returns the settings; null for no reasoning. Adds to `dropped` the parts that the model cannot do. */
export function messagesThinking(
  wanted: WantedThinking | null,
  turn: ThinkingTurn,
  dropped: DroppedFields,
): MessagesThinking | null {
  if (wanted === null || wanted.depth.type === 'off') return null
  const leaveOut = (note?: string): null => {
    dropped.add(wanted.field, note)
    return null
  }
  if (wanted.depth.type === 'effort' && !Object.hasOwn(BUDGET_TOKENS, wanted.depth.effort)) return leaveOut()
  if (turn.isForced) return leaveOut('not together with a forced tool_choice')
  if (!turn.mayThink) return leaveOut('the turn to go on with carries no signed thinking_blocks')
  if (!turn.family.takesBudget) return byEffort(wanted, dropped)
  const display = wanted.isHidden ? { display: 'omitted' } : {}
  if (wanted.depth.type === 'adaptive') return { thinking: { type: 'adaptive', ...display }, effort: null }
  const tokens = budgetTokens(wanted.depth, turn.limit)
  if (tokens < MIN_BUDGET_TOKENS) return leaveOut('max_tokens leaves no room for it')
  if (wanted.depth.type === 'budget' && tokens !== wanted.depth.tokens)
    dropped.add(wanted.field, 'its budget must be at least 1024 and below max_tokens')
  return { thinking: { type: 'enabled', budget_tokens: tokens, ...display }, effort: null }
}

/** Returns the settings for a model that takes no budget. It hides its reasoning by default. */
function byEffort({ field, depth, isHidden }: WantedThinking, dropped: DroppedFields): MessagesThinking {
  if (depth.type === 'budget') dropped.add(field, 'this model takes no budget')
  const effort = depth.type === 'effort' ? (EFFORTS[depth.effort] ?? depth.effort) : null
  return { thinking: { type: 'adaptive', display: isHidden ? 'omitted' : 'summarized' }, effort }
}

function budgetTokens(depth: Extract<Depth, { type: 'effort' | 'budget' }>, limit: number): number {
  const tokens =
    depth.type === 'effort' ? BUDGET_TOKENS[depth.effort]! : Math.max(depth.tokens, MIN_BUDGET_TOKENS)
  return Math.min(tokens, limit - 1)
}
