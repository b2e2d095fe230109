import { closeSync, openSync } from 'node:fs'

/**
 * Open files held back for connections to upstreams. A listener takes every file the process may open: without these a
 * crowd of clients leaves none to answer one of them with.
 */
export class ReservedDescriptors {
  readonly #wanted: number
  readonly #held: number[] = []

  constructor(wanted: number) {
    this.#wanted = wanted
    this.refill()
  }

  /** Makes room for one more open file. @returns false when none is left to give */
  releaseOne(): boolean {
    const file = this.#held.pop()
    if (file !== undefined) closeSync(file)
    return file !== undefined
  }

  /** Takes back what was given, as far as there is room: to be called when a file was closed. */
  refill(): void {
    try {
      while (this.#held.length < this.#wanted) this.#held.push(openSync('/dev/null', 'r'))
    } catch {
      // No room yet: the next file closed makes some.
    }
  }

  close(): void {
    while (this.releaseOne());
  }
}
