/**
 * Bytes that are compared at known places, once a chunk: eight at a time, as numbers. The runtime's own comparison
 * takes four times as long for a chunk's length, a loop over its bytes ten times. What belongs together stands in one
 * list of words: with many streams open a chunk finds none of its stream's memory in the cache, and pays for each piece.
 */

const WORD_BYTES = 8

/** How many words a pattern of `length` bytes takes. */
export const wordsOf = (length: number): number =>
  length < WORD_BYTES ? length : Math.ceil(length / WORD_BYTES)

/** Adds the words of a pattern: its last eight bytes, which may overlap the word before; of fewer bytes each one. */
export function addPattern(words: number[], bytes: Buffer): void {
  const { length } = bytes
  if (length < WORD_BYTES) {
    words.push(...bytes)
    return
  }
  for (let at = 0; at + WORD_BYTES < length; at += WORD_BYTES) words.push(wordAt(bytes, at))
  words.push(wordAt(bytes, length - WORD_BYTES))
}

/**
 * Whether the pattern of `length` bytes, whose words begin at `words[first]`, stands at `at` of what `viewOf` showed.
 * There must be as many bytes from there on.
 * @param at counted from the start of the buffer's memory
 */
export function isPatternAt(
  words: readonly number[],
  first: number,
  length: number,
  view: DataView,
  at: number,
): boolean {
  if (length < WORD_BYTES) return isShortAt(words, first, length, view, at)
  const lastAt = at + length - WORD_BYTES
  let word = first
  for (let place = at; place < lastAt; place += WORD_BYTES)
    if (view.getFloat64(place, true) !== words[word++]) return false
  return view.getFloat64(lastAt, true) === words[word]
}

function isShortAt(words: readonly number[], first: number, length: number, view: DataView, at: number) {
  for (let i = 0; i < length; i++) if (view.getUint8(at + i) !== words[first + i]) return false
  return true
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
