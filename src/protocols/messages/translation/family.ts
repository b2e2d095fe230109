/**
 * Differences between generations of models of the messages protocol, by their names: `claude-sonnet-4-5-20250929`,
 * `claude-3-7-sonnet-latest`.
 */
import { generation } from '../../generation.ts'

/** The number may follow or precede the model's kind; eight digits are a date. */
const NUMBERED = /claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/i
/** Kinds that reason in every call, whatever their generation. */
const ALWAYS_REASONS = /claude-(?:fable|mythos)-/i

const FIRST_WITH_ONE_SAMPLING_SETTING = generation(4, 1)
const FIRST_WITH_STRUCTURED_OUTPUT = generation(4, 5)
const FIRST_WITH_ADAPTIVE_REASONING = generation(4, 6)
const FIRST_WITHOUT_BUDGETS = generation(4, 7)
const FIRST_TO_REASON_BY_DEFAULT = generation(5)
const FIRST_OPUS_TO_ALWAYS_REASON = generation(5, 5)
const FIRST_SONNET_TO_REASON_BETWEEN_TOOLS = generation(5, 5)
const FIRST_WITHOUT_FORCED_TOOLS: Readonly<Record<string, number>> = {
  fable: generation(5, 1),
  mythos: generation(5, 1),
  opus: generation(5, 5),
  sonnet: generation(5, 5),
}

export interface ModelFamily {
  /** Answers of the model, and the arguments of its calls, can be held to a JSON schema. */
  readonly takesSchemas: boolean
  /** `one`: `temperature` and `top_p` are refused together. `none`: they are refused, and `top_k`. */
  readonly sampling: 'both' | 'one' | 'none'
  /** The depth of reasoning can be set in tokens; else only by effort. */
  readonly takesBudget: boolean
  /** The depth of reasoning can be left to the model. */
  readonly takesAdaptive: boolean
  /** The type of `thinking` that turns reasoning off; `unset`: it is off without one; null: it cannot be turned off. */
  readonly withoutThinking: 'unset' | 'disabled' | 'between_tools' | null
  /** A call of a tool can be forced. */
  readonly takesForcedTools: boolean
}

export function readFamily(model: string): ModelFamily {
  const numbered = NUMBERED.exec(model)
  const alwaysReasons = ALWAYS_REASONS.test(model)
  // Other vendors serve this protocol, too: a name without a number takes every setting.
  if (numbered === null)
    return {
      takesSchemas: true,
      sampling: 'both',
      takesBudget: true,
      takesAdaptive: true,
      withoutThinking: alwaysReasons ? null : 'disabled',
      takesForcedTools: true,
    }
  const kind = numbered[1]?.toLowerCase() ?? ''
  const own = generation(Number(numbered[2]), Number(numbered[3] ?? 0))
  const takesBudget = own < FIRST_WITHOUT_BUDGETS
  return {
    takesSchemas: own >= FIRST_WITH_STRUCTURED_OUTPUT,
    sampling: !takesBudget ? 'none' : own >= FIRST_WITH_ONE_SAMPLING_SETTING ? 'one' : 'both',
    takesBudget,
    takesAdaptive: own >= FIRST_WITH_ADAPTIVE_REASONING,
    withoutThinking: alwaysReasons ? null : withoutThinking(kind, own),
    takesForcedTools: own < (FIRST_WITHOUT_FORCED_TOOLS[kind] ?? Number.POSITIVE_INFINITY),
  }
}

function withoutThinking(kind: string, own: number): ModelFamily['withoutThinking'] {
  if (own < FIRST_TO_REASON_BY_DEFAULT) return 'unset'
  if (kind === 'opus' && own >= FIRST_OPUS_TO_ALWAYS_REASON) return null
  return kind === 'sonnet' && own >= FIRST_SONNET_TO_REASON_BETWEEN_TOOLS ? 'between_tools' : 'disabled'
}
