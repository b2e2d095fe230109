/** The responses that the simulated provider keeps: the last ones, for any key. */

export type KeptResponse = {
  readonly response: Readonly<Record<string, unknown>>
  /** Items of the request's input, and those that answer it. */
  readonly input: readonly unknown[]
  readonly output: readonly Readonly<Record<string, unknown>>[]
  /** JSON of the whole conversation, its output included: what a call that goes on with it reads again. */
  readonly json: string
}

const MAX_KEPT = 1_000

export class ResponseShelf {
  readonly #kept = new Map<string, KeptResponse>()

  keep(id: string, kept: KeptResponse): void {
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    this.#kept.set(id, kept)
  }

  find(id: string): KeptResponse | null {
    return this.#kept.get(id) ?? null
  }

  /** Returns whether it was there. */
  delete(id: string): boolean {
    return this.#kept.delete(id)
  }
}
