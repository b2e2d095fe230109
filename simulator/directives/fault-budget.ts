/** How often a fault with `times=K` has still to strike. */

import type { Fault } from './faults.ts'
import type { Directives } from './grammar.ts'

const MAX_KEYS = 10_000

export class FaultBudget {
  readonly #struck = new Map<string, number>()

  /**
   * The directives' fault if it strikes this time. `key` is the exact text of the model and all directives:
   * the first K requests that share it are struck, the next succeed.
   */
  take(key: string, { fault, times }: Directives): Fault | null {
    if (fault === undefined) return null
    if (times === undefined) return fault
    const struck = this.#struck.get(key) ?? 0
    if (struck >= times) return null
    if (struck === 0 && this.#struck.size >= MAX_KEYS)
      this.#struck.delete(this.#struck.keys().next().value ?? '')
    this.#struck.set(key, struck + 1)
    return fault
  }

  clear(): void {
    this.#struck.clear()
  }
}
