/**
 * Differences between generations of models of the messages protocol, by their names: `claude-sonnet-4-5-20250929`,
 * `claude-3-7-sonnet-latest`.
 */

/** The number may follow or precede the model's kind; eight digits are a date. */
const NUMBERED = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/i
const FIRST_WITH_ONE_SAMPLING_SETTING = 4.1
const FIRST_WITH_OUTPUT_FORMAT = 4.5
const FIRST_WITHOUT_BUDGETS = 4.7

export interface ModelFamily {
  /** Answers of the model can be held to a JSON schema. */
  readonly takesOutputFormat: boolean
  /** `one`: `temperature` and `top_p` are refused together. `none`: they are refused, and `top_k`. */
  readonly sampling: 'both' | 'one' | 'none'
  /** The depth of reasoning can be set in tokens; else by effort alone. */
  readonly takesBudget: boolean
}

export function familyOf(model: string): ModelFamily {
  const numbered = NUMBERED.exec(model)
  // Other vendors serve this protocol, too: a name without a number takes every setting.
  if (numbered === null) return { takesOutputFormat: true, sampling: 'both', takesBudget: true }
  const generation = Number(`${numbered[1]}.${numbered[2] ?? 0}`)
  const takesBudget = generation < FIRST_WITHOUT_BUDGETS
  return {
    takesOutputFormat: generation >= FIRST_WITH_OUTPUT_FORMAT,
    sampling: !takesBudget ? 'none' : generation >= FIRST_WITH_ONE_SAMPLING_SETTING ? 'one' : 'both',
    takesBudget,
  }
}
