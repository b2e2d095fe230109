/**
 * Compares bytes at known places, once a chunk: eight at a time, as numbers. The runtime's own comparison takes four
 * times as long for a chunk's length, a loop over its bytes ten times. Related words are in one list: with many
 * streams open a chunk finds none of its stream's memory in the cache, and pays for each piece.
 */

export const WORD_BYTES = 8

/** Returns the number of words of a pattern of `length` bytes. */
export const countWords = (length: number): number =>
  length < WORD_BYTES ? length : (length + WORD_BYTES - 1) >> 3

/**
 * Adds the words of a pattern: its last eight bytes, which may overlap the word before; each byte of a shorter one.
 */
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
 * Returns whether the pattern of `length` bytes, whose words begin at `words[first]`, is at `at` in the view of
 * `viewOf`. At least that many bytes must follow.
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

/** Returns how many bytes at `at`, in whole words, are those of the pattern. At most `end` is read. */
export function countEqual(
  words: readonly number[],
  first: number,
  length: number,
  view: DataView,
  at: number,
  end: number,
): number {
  const most = Math.min(length, end - at) - WORD_BYTES
  let equal = 0
  for (let word = first; equal <= most && view.getFloat64(at + equal, true) === words[word]; word++)
    equal += WORD_BYTES
  return equal
}

/**
 * Returns eight bytes as a number. Zero has two forms that are equal as numbers, and NaN equals nothing; no JSON text
 * has either.
 */
function wordAt(bytes: Buffer, at: number): number {
  const word = bytes.readDoubleLE(at)
  return word === 0 ? Number.NaN : word
}

let lastBuffer: ArrayBufferLike = new ArrayBuffer(0)
let lastView: DataView = new DataView(lastBuffer)

/**
 * Returns a view of all memory that `bytes` is a part of; pieces of a stream are in one buffer that all reads share.
 */
export function openView(bytes: Buffer): DataView {
  const { buffer } = bytes
  if (buffer !== lastBuffer) {
    lastBuffer = buffer
    lastView = new DataView(buffer)
  }
  return lastView
}
