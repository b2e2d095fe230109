/** Builds the messages protocol's `thinking` from the wish of a chat-completions request. */

import type { Depth, WantedThinking } from '../chat-completions/wanted-thinking.ts'
import type { LooseObject } from '../loose.ts'
import type { DroppedFields } from '../translate/dropped-fields.ts'

const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 4096,
}
const MIN_BUDGET_TOKENS = 1024

export interface ThinkingTurn {
  /** A tool has to be called. */
  readonly isForced: boolean
  /** The turn to go on with began with signed thinking, or is a new one. */
  readonly mayThink: boolean
  /** `max_tokens`. */
  readonly limit: number
}

/** Returns the setting; null for a model without reasoning. Adds to `dropped` the parts that the model cannot do. */
export function messagesThinking(
  wanted: WantedThinking | null,
  turn: ThinkingTurn,
  dropped: DroppedFields,
): LooseObject | null {
  if (wanted === null || wanted.depth.type === 'off') return null
  const leaveOut = (note?: string): null => {
    dropped.add(wanted.field, note)
    return null
  }
  if (wanted.depth.type === 'effort' && !Object.hasOwn(BUDGET_TOKENS, wanted.depth.effort)) return leaveOut()
  if (turn.isForced) return leaveOut('not together with a forced tool_choice')
  if (!turn.mayThink) return leaveOut('the turn to go on with carries no signed thinking_blocks')
  const display = wanted.isHidden ? { display: 'omitted' } : {}
  if (wanted.depth.type === 'adaptive') return { type: 'adaptive', ...display }
  const tokens = budgetTokens(wanted.depth, turn.limit)
  if (tokens < MIN_BUDGET_TOKENS) return leaveOut('max_tokens leaves no room for it')
  if (wanted.depth.type === 'budget' && tokens !== wanted.depth.tokens)
    dropped.add(wanted.field, 'its budget must be at least 1024 and below max_tokens')
  return { type: 'enabled', budget_tokens: tokens, ...display }
}

function budgetTokens(depth: Extract<Depth, { type: 'effort' | 'budget' }>, limit: number): number {
  const tokens =
    depth.type === 'effort' ? BUDGET_TOKENS[depth.effort]! : Math.max(depth.tokens, MIN_BUDGET_TOKENS)
  return Math.min(tokens, limit - 1)
}
