/** Counts the events of an event stream without decoding its bytes. */

const LF = 10
const EVENT_END = Buffer.from('\n\n')
const DONE = Buffer.from('data: [DONE]\n\n')

export class EventCounter {
  #events = 0
  #endedInNewline = false
  readonly #tail = Buffer.alloc(DONE.length)

  /** Complete events so far, `[DONE]` included. */
  get events(): number {
    return this.#events
  }

  /** True when the last event was `[DONE]`, to the byte. */
  get done(): boolean {
    return this.#tail.equals(DONE)
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return
    let at = 0
    if (this.#endedInNewline && piece[0] === LF) {
      this.#events++
      at = 1
    }
    for (let end = piece.indexOf(EVENT_END, at); end >= 0; end = piece.indexOf(EVENT_END, at)) {
      this.#events++
      at = end + EVENT_END.length
    }
    this.#endedInNewline = at < piece.length && piece[piece.length - 1] === LF
    this.#keepTail(piece)
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
    this.#endedInNewline = false
    this.#tail.fill(0)
  }
}
