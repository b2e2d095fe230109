/** The speed at which each model writes, measured by the calls that reported their usage. */

/** Tokens a second of a model that has not been measured. */
export const UNMEASURED_TOKENS_PER_SECOND = 50
/** A shorter answer says more about the way to its upstream than about the model. */
const MIN_TOKENS = 32
const MIN_MS = 250
/** Share of the newest call in the measure. */
const NEWEST_SHARE = 0.2
const MS_PER_SECOND = 1000

export class OutputRates {
  /** By model; as many as the catalog has. */
  readonly #tokensPerMs = new Map<string, number>()

  /** Notes an answer: its output, hidden reasoning included, and the time from its request to its end. */
  measure(modelId: string, tokens: number, ms: number): void {
    if (tokens < MIN_TOKENS || ms < MIN_MS) return
    const before = this.#tokensPerMs.get(modelId)
    const newest = tokens / ms
    this.#tokensPerMs.set(modelId, before === undefined ? newest : before + NEWEST_SHARE * (newest - before))
  }

  /** Returns the tokens that the model writes in this time. */
  tokensIn(modelId: string, ms: number): number {
    const perMs = this.#tokensPerMs.get(modelId) ?? UNMEASURED_TOKENS_PER_SECOND / MS_PER_SECOND
    return Math.ceil(perMs * ms)
  }
}
