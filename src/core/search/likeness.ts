/** Finds terms that a misspelt word may mean, and their edit distance. */

const MIN_FUZZY_CHARS = 4
/** In words of this many letters or more two errors are forgiven, otherwise one. */
const TWO_EDITS_FROM = 8
const LONGEST_PIECE = 3
const LETTER_BITS = 16
const FUZZY = /^\p{L}[\p{L}\p{N}]*$/u
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u

/** Returns whether words of this form are matched by likeness. */
export const isFuzzy = (term: string): boolean =>
  term.length >= MIN_FUZZY_CHARS && FUZZY.test(term) && !UNSPACED.test(term)

export const maxEdits = (word: string): number => (word.length >= TWO_EDITS_FROM ? 2 : 1)

/** Returns a bit for each kind of letter in the term. One error changes two of them at most. */
export function letterBits(term: string): number {
  let bits = 0
  for (let at = 0; at < term.length; at++) bits |= 1 << (term.charCodeAt(at) % LETTER_BITS)
  return bits
}

export const reverse = (term: string): string => [...term].reverse().join('')

/** Letters at the beginning and at the end of which one end must be right. */
export const pieceLength = (word: string): number =>
  Math.min(LONGEST_PIECE, Math.max(2, Math.floor((word.length - 1) / 2)))

/**
 * Returns the number of insertions, deletions, substitutions and swaps of neighbours between two words (optimal string
 * alignment); `most + 1` for anything above `most`.
 */
export function editDistance(one: string, other: string, most: number): number {
  const tooMany = most + 1
  if (Math.abs(one.length - other.length) > most) return tooMany
  let before: number[] = []
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const current = [i]
    let least = i
    for (let j = 1; j <= other.length; j++) {
      const substituted = previous[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      let cost = Math.min(previous[j]! + 1, current[j - 1]! + 1, substituted)
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        cost = Math.min(cost, before[j - 2]! + 1)
      current.push(cost)
      least = Math.min(least, cost)
    }
    if (least > most) return tooMany
    before = previous
    previous = current
  }
  return Math.min(previous[other.length]!, tooMany)
}
