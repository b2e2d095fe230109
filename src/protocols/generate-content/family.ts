/**
 * Differences between generations of models of the generate-content protocol, by their names: `gemini-2.5-flash`,
 * `models/gemini-3-pro-preview`. A name without a number counts as a current one.
 */
import type { WantedThinking } from '../chat-completions/wanted-thinking.ts'

export interface ModelFamily {
  /** Schemas as JSON Schema; else the subset of `schema-subset.ts`. */
  readonly takesJsonSchema: boolean
  /** A first call without the signature of its thought is refused. */
  readonly needsSignatures: boolean
  /** The upstream's own search can be offered beside functions. */
  readonly searchesBesideFunctions: boolean
  /** The setting for the depth of reasoning; null for a model without reasoning. */
  readonly thinking: 'level' | 'budget' | null
  readonly isPro: boolean
  /** Such as 2.5; null where the name has none. */
  readonly generation: number | null
}

const NUMBERED = /gemini-(\d+)(?:\.(\d))?(?![\d.])/i
/** Open models, served beside the others, without what those learned since. */
const OPEN_MODEL = /^(models\/)?(gemma|learnlm)/i
const FIRST_TO_THINK = 2.5
const FIRST_WITH_LEVELS = 3
const FIRST_TO_SEARCH_BESIDE_FUNCTIONS = 3

export function familyOf(model: string): ModelFamily {
  const numbered = NUMBERED.exec(model)
  const generation = numbered === null ? null : Number(`${numbered[1]}.${numbered[2] ?? 0}`)
  const isOld = generation === null ? OPEN_MODEL.test(model) : generation < FIRST_TO_THINK
  const hasLevels = generation !== null && generation >= FIRST_WITH_LEVELS
  return {
    takesJsonSchema: !isOld,
    needsSignatures: hasLevels,
    searchesBesideFunctions: generation === null || generation >= FIRST_TO_SEARCH_BESIDE_FUNCTIONS,
    thinking: isOld ? null : hasLevels ? 'level' : 'budget',
    isPro: /-pro\b/i.test(model),
    generation,
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

function levelOf({ isPro, generation }: ModelFamily, effort: string): string {
  const level = LEVELS[effort]!
  if (isPro && level === 'minimal') return 'low'
  // The first model with levels had two of them.
  return isPro && generation === FIRST_WITH_LEVELS && level === 'medium' ? 'high' : level
}

const DYNAMIC_BUDGET = -1

/** Returns `thinkingConfig` for a wanted depth; null for an unknown effort, or a model without reasoning. */
export function thinkingConfig(family: ModelFamily, { depth, isHidden }: WantedThinking): object | null {
  if (family.thinking === null) return null
  const shown = isHidden || depth.type === 'off' ? {} : { includeThoughts: true }
  if (depth.type === 'budget') return { thinkingBudget: withinFamily(family, depth.tokens), ...shown }
  const isByLevel = family.thinking === 'level'
  if (depth.type === 'adaptive') return isByLevel ? shown : { thinkingBudget: DYNAMIC_BUDGET, ...shown }
  const effort = depth.type === 'off' ? 'none' : depth.effort
  if (!Object.hasOwn(LEVELS, effort)) return null
  if (isByLevel) return { thinkingLevel: levelOf(family, effort), ...shown }
  return { thinkingBudget: withinFamily(family, BUDGET_TOKENS[effort]!), ...shown }
}

const withinFamily = ({ isPro }: ModelFamily, tokens: number): number =>
  isPro ? Math.max(tokens, MIN_PRO_BUDGET_TOKENS) : tokens
