import { closeSync, openSync } from 'node:fs'

/**
 * File descriptors reserved for connections to upstreams. A listener accepts until EMFILE: without a reserve a crowd of
 * clients leaves none to answer one of them.
 */
export class ReservedDescriptors {
  readonly #wanted: number
  readonly #held: number[] = []

  constructor(wanted: number) {
    this.#wanted = wanted
    this.refill()
  }

  /** Frees one descriptor. @returns false when none is left */
  releaseOne(): boolean {
    const file = this.#held.pop()
    if (file !== undefined) closeSync(file)
    return file !== undefined
  }

  /** Reserves the missing descriptors, as far as there are any. To be called when a file was closed. */
  refill(): void {
    try {
      while (this.#held.length < this.#wanted) this.#held.push(openSync('/dev/null', 'r'))
    } catch {
      // None is free: the next close frees one.
    }
  }

  close(): void {
    while (this.releaseOne());
  }
}
