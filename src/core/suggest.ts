/** Finds the known name nearest to a mistyped one, so that a refusal can suggest it. */
import { distance } from 'fastest-levenshtein'

/** More edits than this in a short name make another name of it. */
const MAX_EDITS = 3

export function findNearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null
  const lower = word.toLowerCase()
  let fewest = Math.min(MAX_EDITS, Math.floor(word.length / 2)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= fewest) continue
    const edits = distance(lower, candidate.toLowerCase())
    if (edits < fewest) [best, fewest] = [candidate, edits]
  }
  return best
}

/** Returns ` Did you mean "x"?`, or an empty text. */
export function suggest(word: string, known: Iterable<string>): string {
  return printSuggestion(findNearest(word, known))
}

/** Returns the same for a name that was found otherwise. */
export const printSuggestion = (name: string | null): string =>
  name === null ? '' : ` Did you mean "${name}"?`
