/**
 * Differences between generations of models of the messages protocol, by their names: `claude-sonnet-4-5-20250929`,
 * `claude-3-7-sonnet-latest`. A name without a number counts as a current one.
 */

/** The number may follow or precede the model's kind; eight digits are a date. */
const NUMBERED = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/i
const FIRST_WITH_OUTPUT_FORMAT = 4.5

/** Returns a number such as 4.5; null where the name has none. */
function generationOf(model: string): number | null {
  const numbered = NUMBERED.exec(model)
  return numbered === null ? null : Number(`${numbered[1]}.${numbered[2] ?? 0}`)
}

/** Answers of the model can be held to a JSON schema. */
export function takesOutputFormat(model: string): boolean {
  const generation = generationOf(model)
  return generation === null || generation >= FIRST_WITH_OUTPUT_FORMAT
}
