/** The calls that are open in one segment. */
export interface Placed {
  /** Kept by the `OpenCalls` it is in. */
  place: number
}

/**
 * An array and no `Set`: each table that a `Set` outgrows points to the next one, so that a single dead table in old
 * space keeps all that came after it, with their calls, until a full garbage collection. Under load that was the most
 * of what the young collector had to copy.
 */
export class OpenCalls<Call extends Placed> {
  #calls: Call[] = []

  get size(): number {
    return this.#calls.length
  }

  /** In no order. */
  get all(): readonly Call[] {
    return this.#calls
  }

  /** A call is in one at a time: what it was in before must be cleared. */
  add(call: Call): void {
    call.place = this.#calls.length
    this.#calls.push(call)
  }

  /** false when it is not in here. */
  delete(call: Call): boolean {
    if (this.#calls[call.place] !== call) return false
    const last = this.#calls.pop()
    if (last === undefined || last === call) return true
    last.place = call.place
    this.#calls[call.place] = last
    return true
  }

  clear(): void {
    this.#calls = []
  }
}
