/** Bounds the memory of answers that are kept under an Idempotency-Key. See docs/api-rules.md, "Idempotency". */

const BYTES_PER_MIB = 1024 * 1024
/** An answer above this is not kept: replaying it is refused. */
export const MAX_KEPT_ANSWER_BYTES = 8 * BYTES_PER_MIB
/** The part of each answer that is held whatever others take. */
export const FREE_BYTES = BYTES_PER_MIB
const MAX_HELD_BYTES = 64 * BYTES_PER_MIB
const MAX_HELD_BYTES_OF_ACCOUNT = 32 * BYTES_PER_MIB

/** Memory for what answers have beyond `FREE_BYTES`, while they are gathered, stored or replayed. */
export class AnswerMemory {
  readonly #byAccount = new Map<string, number>()
  #bytes = 0

  /** Returns false where there is no room. */
  take(accountId: string, bytes: number): boolean {
    const held = (this.#byAccount.get(accountId) ?? 0) + bytes
    if (held > MAX_HELD_BYTES_OF_ACCOUNT || this.#bytes + bytes > MAX_HELD_BYTES) return false
    this.#byAccount.set(accountId, held)
    this.#bytes += bytes
    return true
  }

  release(accountId: string, bytes: number): void {
    this.#bytes -= bytes
    const held = (this.#byAccount.get(accountId) ?? 0) - bytes
    if (held > 0) this.#byAccount.set(accountId, held)
    else this.#byAccount.delete(accountId)
  }
}

/** Memory that one answer takes up. */
export class HeldAnswer {
  readonly #memory: AnswerMemory
  readonly #accountId: string
  #bytes = 0

  constructor(memory: AnswerMemory, accountId: string) {
    this.#memory = memory
    this.#accountId = accountId
  }

  /** Holds an answer of this length from here on; false where there is no room. */
  grow(length: number): boolean {
    const more = length - FREE_BYTES - this.#bytes
    if (more <= 0) return true
    if (!this.#memory.take(this.#accountId, more)) return false
    this.#bytes += more
    return true
  }

  release(): void {
    this.#memory.release(this.#accountId, this.#bytes)
    this.#bytes = 0
  }
}
