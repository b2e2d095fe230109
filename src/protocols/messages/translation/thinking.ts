/** Builds `thinking` and `output_config.effort` of the messages protocol from the depth of reasoning that a client wants. */
import type {
  ReasoningDepth as Depth,
  Setting,
  WantedReasoning,
} from '../../../../schemas/chat/conversation.ts'
import { DEFAULT_EFFORT } from '../../chat-completions/translation/wanted-thinking.ts'
import type { LooseObject } from '../../loose.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'
import type { ModelFamily } from './family.ts'

const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 4096,
  max: 4096,
}
const LEAST_EFFORT = 'low'
/** Efforts that the protocol has under another name. */
const EFFORTS: Readonly<Record<string, string>> = { minimal: LEAST_EFFORT }
const MIN_BUDGET_TOKENS = 1024

interface ThinkingTurn {
  /** A tool has to be called. */
  readonly isForced: boolean
  /** The turn to go on with began with signed thinking, or is a new one: reasoning with a budget needs that. */
  readonly mayThink: boolean
  /** `max_tokens`. */
  readonly limit: number
  readonly family: ModelFamily
}

interface MessagesThinking {
  /** The model is asked to reason. */
  readonly isOn: boolean
  /** Null to leave it out. */
  readonly thinking: LooseObject | null
  /** `output_config.effort`; null without one. */
  readonly effort: string | null
}

/** Returns the settings; null for none. Adds to `dropped` the parts that the model cannot do. */
export function messagesThinking(
  setting: Setting<WantedReasoning> | undefined,
  turn: ThinkingTurn,
  dropped: DroppedFields,
): MessagesThinking | null {
  if (setting === undefined) return null
  const wanted = { field: setting.field, ...setting.value }
  if (wanted.depth.type === 'off') return turnOff(wanted, turn.family, dropped)
  const leaveOut = (note?: string): null => {
    dropped.add(wanted.field, note)
    return null
  }
  if (wanted.depth.type === 'effort' && !Object.hasOwn(BUDGET_TOKENS, wanted.depth.effort)) return leaveOut()
  if (turn.isForced) return leaveOut('not together with a forced tool_choice')
  if (!turn.family.takesBudget) return chooseEffort(wanted, dropped)
  const display = wanted.isHidden ? { display: 'omitted' } : {}
  if (wanted.depth.type === 'adaptive') {
    if (turn.family.takesAdaptive)
      return { isOn: true, thinking: { type: 'adaptive', ...display }, effort: null }
    dropped.change(wanted.field, 'a budget: this model takes nothing else')
  }
  if (!turn.mayThink) return leaveOut('the turn to go on with carries no signed thinking_blocks')
  const tokens = budgetTokens(wanted.depth, turn.limit)
  if (tokens < MIN_BUDGET_TOKENS) return leaveOut('max_tokens leaves no room for it')
  if (wanted.depth.type === 'budget' && tokens !== wanted.depth.tokens)
    dropped.change(wanted.field, 'its budget must be at least 1024 and below max_tokens')
  return { isOn: true, thinking: { type: 'enabled', budget_tokens: tokens, ...display }, effort: null }
}

type Wanted = WantedReasoning & Pick<Setting<unknown>, 'field'>

/** Returns the settings by which the model does not reason, or reasons least. */
function turnOff(
  { field }: Wanted,
  { withoutThinking }: ModelFamily,
  dropped: DroppedFields,
): MessagesThinking | null {
  if (withoutThinking === 'unset') return null
  if (withoutThinking !== null) return { isOn: false, thinking: { type: withoutThinking }, effort: null }
  dropped.change(field, 'this model always reasons: it is asked for the least')
  return { isOn: false, thinking: null, effort: LEAST_EFFORT }
}

/** Returns the settings for a model that takes no budget. It hides its reasoning by default. */
function chooseEffort({ field, depth, isHidden }: Wanted, dropped: DroppedFields): MessagesThinking {
  if (depth.type === 'budget') dropped.change(field, 'this model takes no budget')
  const effort = depth.type === 'effort' ? (EFFORTS[depth.effort] ?? depth.effort) : null
  return { isOn: true, thinking: { type: 'adaptive', display: isHidden ? 'omitted' : 'summarized' }, effort }
}

function budgetTokens(depth: Exclude<Depth, { type: 'off' }>, limit: number): number {
  const tokens =
    depth.type === 'budget'
      ? Math.max(depth.tokens, MIN_BUDGET_TOKENS)
      : BUDGET_TOKENS[depth.type === 'effort' ? depth.effort : DEFAULT_EFFORT]!
  return Math.min(tokens, limit - 1)
}
