/** Counts the events of an event stream, or another mark in it, without decoding its bytes. */

const EVENT_END = Buffer.from('\n\n')
const DONE = Buffer.from('data: [DONE]\n\n')

export class EventCounter {
  readonly #mark: Buffer
  #events = 0
  /** How many bytes of the mark end what was counted so far. */
  #begun = 0
  readonly #tail = Buffer.alloc(DONE.length)

  /** @param mark must not begin again within itself */
  constructor(mark: Buffer = EVENT_END) {
    this.#mark = mark
  }

  /** Complete marks so far; as events, `[DONE]` included. */
  get events(): number {
    return this.#events
  }

  /** True when the last event was `[DONE]`, to the byte. */
  get done(): boolean {
    return this.#tail.equals(DONE)
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return
    const mark = this.#mark
    let at = this.#continue(piece)
    for (let found = piece.indexOf(mark, at); found >= 0; found = piece.indexOf(mark, at)) {
      this.#events++
      at = found + mark.length
    }
    if (this.#begun === 0) this.#begun = this.#countBegun(piece.subarray(at))
    this.#keepTail(piece)
  }

  /** Ends a mark that the last piece began. Returns where to go on. */
  #continue(piece: Buffer): number {
    let at = 0
    while (this.#begun > 0 && at < piece.length) {
      if (piece[at] !== this.#mark[this.#begun]) this.#begun = 0
      else {
        at++
        if (++this.#begun < this.#mark.length) continue
        this.#events++
        this.#begun = 0
      }
    }
    return at
  }

  #countBegun(rest: Buffer): number {
    for (let length = Math.min(this.#mark.length - 1, rest.length); length > 0; length--)
      if (this.#mark.subarray(0, length).equals(rest.subarray(rest.length - length))) return length
    return 0
  }

  #keepTail(piece: Buffer): void {
    const size = this.#tail.length
    if (piece.length >= size) piece.copy(this.#tail, 0, piece.length - size)
    else {
      this.#tail.copyWithin(0, piece.length)
      piece.copy(this.#tail, size - piece.length)
    }
  }

  reset(): void {
    this.#events = 0
    this.#begun = 0
    this.#tail.fill(0)
  }
}
