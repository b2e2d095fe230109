/**
 * Differences between generations of models of the generate-content protocol, by their names: `gemini-2.5-flash`,
 * `models/gemini-3-pro-preview`. A name without a number counts as a current one.
 */
import type { WantedReasoning } from '../../../schemas/chat/conversation.ts'
import { generation } from '../generation.ts'

export interface ModelFamily {
  /** Schemas as JSON Schema; else the subset of `schema-subset.ts`. */
  readonly takesJsonSchema: boolean
  /** A first call without the signature of its thought is refused. */
  readonly needsSignatures: boolean
  /** The upstream's own search can be offered beside functions, and either beside an answer in JSON. */
  readonly combinesTools: boolean
  /** `presencePenalty` and `frequencyPenalty` are taken. */
  readonly takesPenalties: boolean
  /** Calls can be held to the schemas of their functions without being forced. */
  readonly takesValidatedCalls: boolean
  /** The setting for the depth of reasoning; null for a model without reasoning. */
  readonly thinking: 'level' | 'budget' | null
  /** Reasoning cannot be turned off. */
  readonly alwaysReasons: boolean
  readonly isPro: boolean
  /** As `generation` orders them; null where the name has none. */
  readonly generation: number | null
}

const NUMBERED = /gemini-(\d{1,2})(?:\.(\d{1,2}))?(?![\d.])/i
/** Open models, served beside the others, without what those learned since. */
const OPEN_MODEL = /^(models\/)?(gemma|learnlm)/i
const PRO = /-pro\b/i
const LITE = /-lite\b/i
const FIRST_TO_THINK = generation(2, 5)
const FIRST_WITH_LEVELS = generation(3)
const FIRST_TO_COMBINE_TOOLS = generation(3)
/** Of those that are neither a pro nor a lite model. */
const FIRST_WITHOUT_MINIMAL_LEVEL = generation(3, 7)

export function readFamily(model: string): ModelFamily {
  const numbered = NUMBERED.exec(model)
  const own = numbered === null ? null : generation(Number(numbered[1]), Number(numbered[2] ?? 0))
  const isOld = own === null ? OPEN_MODEL.test(model) : own < FIRST_TO_THINK
  const hasLevels = own !== null && own >= FIRST_WITH_LEVELS
  const isPro = PRO.test(model)
  const lacksMinimal = own !== null && own >= FIRST_WITHOUT_MINIMAL_LEVEL && !LITE.test(model)
  return {
    takesJsonSchema: !isOld,
    needsSignatures: hasLevels,
    combinesTools: own === null || own >= FIRST_TO_COMBINE_TOOLS,
    takesPenalties: isOld,
    takesValidatedCalls: !isOld,
    thinking: isOld ? null : hasLevels ? 'level' : 'budget',
    alwaysReasons: !isOld && (isPro || lacksMinimal),
    isPro,
    generation: own,
  }
}

const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
}
/** Minimum of a model whose reasoning cannot be turned off. */
const MIN_PRO_BUDGET_TOKENS = 128

const LEVELS: Readonly<Record<string, string>> = {
  none: 'minimal',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

function chooseLevel(family: ModelFamily, effort: string): string {
  const level = LEVELS[effort]!
  if (family.alwaysReasons && level === 'minimal') return 'low'
  // The first model with levels had two of them.
  return family.isPro && family.generation === FIRST_WITH_LEVELS && level === 'medium' ? 'high' : level
}

const DYNAMIC_BUDGET = -1

/** Returns `thinkingConfig` for a wanted depth; null for an unknown effort, or a model without reasoning. */
export function thinkingConfig(family: ModelFamily, { depth, isHidden }: WantedReasoning): object | null {
  if (family.thinking === null) return null
  const shown = isHidden || depth.type === 'off' ? {} : { includeThoughts: true }
  if (depth.type === 'budget') return { thinkingBudget: withinFamily(family, depth.tokens), ...shown }
  const isByLevel = family.thinking === 'level'
  if (depth.type === 'adaptive') return isByLevel ? shown : { thinkingBudget: DYNAMIC_BUDGET, ...shown }
  const effort = depth.type === 'off' ? 'none' : depth.effort
  if (!Object.hasOwn(LEVELS, effort)) return null
  if (isByLevel) return { thinkingLevel: chooseLevel(family, effort), ...shown }
  return { thinkingBudget: withinFamily(family, BUDGET_TOKENS[effort]!), ...shown }
}

const withinFamily = ({ isPro }: ModelFamily, tokens: number): number =>
  isPro ? Math.max(tokens, MIN_PRO_BUDGET_TOKENS) : tokens
