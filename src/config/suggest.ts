/** The known name nearest to a mistyped one, so that a refusal can say what was probably meant. */

/** More edits than this in a short name make another name of it. */
const MAX_EDITS = 3

export function nearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null
  let fewest = Math.min(MAX_EDITS, Math.floor(word.length / 2)) + 1
  for (const candidate of known) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (edits < fewest) [best, fewest] = [candidate, edits]
  }
  return best
}

/** ` Did you mean "x"?`, or nothing. */
export function suggestion(word: string, known: Iterable<string>): string {
  const found = nearest(word, known)
  return found === null ? '' : ` Did you mean "${found}"?`
}

/** Levenshtein's distance. Names are short, so two rows of the table are enough and quick. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const substituted = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(substituted, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[to.length]!
}
