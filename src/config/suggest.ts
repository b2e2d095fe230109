/** The known name nearest to a mistyped one, so that a refusal can say what was probably meant. */
import { distance } from 'fastest-levenshtein'

/** More edits than this in a short name make another name of it. */
const MAX_EDITS = 3

export function nearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null
  let fewest = Math.min(MAX_EDITS, Math.floor(word.length / 2)) + 1
  for (const candidate of known) {
    const edits = distance(word.toLowerCase(), candidate.toLowerCase())
    if (edits < fewest) [best, fewest] = [candidate, edits]
  }
  return best
}

/** ` Did you mean "x"?`, or nothing. */
export function suggestion(word: string, known: Iterable<string>): string {
  const found = nearest(word, known)
  return found === null ? '' : ` Did you mean "${found}"?`
}
