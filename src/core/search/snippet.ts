/** The part of a text that shows why it was found: HTML, with the found words in `<mark>`. */
import { escapeHtml } from '../html-text.ts'
import { foldText } from './fold.ts'
import { wordTerm } from './terms.ts'

interface Mark {
  readonly from: number
  readonly to: number
  readonly weight: number
}

const SNIPPET_CHARS = 200
/** Shown before the first hit. */
const LEAD_CHARS = 40
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc]+|\p{Script=Hangul}+|[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu
const WORDS = /[\p{L}\p{N}\p{M}]+(?:['\u2019][\p{L}\p{N}\p{M}]+)*(?:\+\+|#)?/gu
const HAS_UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const SPACES = /\s+/g
const WORD_CHAR = /[\p{L}\p{N}]/u

/**
 * Returns a snippet. `terms` are the searched terms with their weights. `text` is plain and may itself be a part of a
 * longer one: `isBeginning` and `isEnd` decide where an ellipsis is due.
 */
export function cutSnippet(
  text: string,
  terms: ReadonlyMap<string, number>,
  { isBeginning = true, isEnd = true }: { isBeginning?: boolean; isEnd?: boolean } = {},
): string {
  const plain = text.replace(SPACES, ' ').trim()
  const marks = findMarks(plain, terms)
  const from = chooseBeginning(plain, marks)
  const to = chooseEnding(plain, from + SNIPPET_CHARS)
  let html = from > 0 || !isBeginning ? '…' : ''
  let at = from
  for (const mark of marks) {
    if (mark.from < at || mark.to > to) continue
    html += `${escapeHtml(plain.slice(at, mark.from))}<mark>${escapeHtml(plain.slice(mark.from, mark.to))}</mark>`
    at = mark.to
  }
  return `${html}${escapeHtml(plain.slice(at, to))}${to < plain.length || !isEnd ? '…' : ''}`
}

/** Returns the marks in order, without overlaps. */
function findMarks(text: string, terms: ReadonlyMap<string, number>): Mark[] {
  const marks: Mark[] = []
  for (const match of text.matchAll(WORDS)) {
    const [word] = match
    if (HAS_UNSPACED.test(word)) {
      for (const run of word.matchAll(UNSPACED)) addStretches(marks, run[0], match.index + run.index, terms)
      continue
    }
    const weight = terms.get(wordTerm(foldText(word)))
    if (weight !== undefined) marks.push({ from: match.index, to: match.index + word.length, weight })
  }
  return marks
}

/** Adds every part of a run that terms cover. */
function addStretches(marks: Mark[], run: string, offset: number, terms: ReadonlyMap<string, number>): void {
  const folded = foldText(run)
  if (folded.length !== run.length) return
  const weights = new Float64Array(run.length)
  for (const [term, weight] of terms)
    for (let at = folded.indexOf(term); at >= 0; at = folded.indexOf(term, at + 1))
      for (let i = at; i < at + term.length; i++) weights[i] = Math.max(weights[i]!, weight)
  for (let from = 0; from < run.length; from++) {
    if (weights[from] === 0) continue
    let to = from
    let weight = 0
    while (to < run.length && weights[to]! > 0) weight = Math.max(weight, weights[to++]!)
    marks.push({ from: offset + from, to: offset + to, weight })
    from = to
  }
}

/** Returns the beginning of the part whose hits weigh most. */
function chooseBeginning(text: string, marks: readonly Mark[]): number {
  if (text.length <= SNIPPET_CHARS) return 0
  let best = 0
  let bestWeight = 0
  for (const [index, { from }] of marks.entries()) {
    let weight = 0
    for (let at = index; at < marks.length && marks[at]!.to <= from + SNIPPET_CHARS - LEAD_CHARS; at++)
      weight += marks[at]!.weight
    if (weight > bestWeight) [best, bestWeight] = [from, weight]
  }
  let from = Math.max(0, Math.min(best - LEAD_CHARS, text.length - SNIPPET_CHARS))
  // At the beginning of a word, where one is near.
  const space = text.indexOf(' ', from)
  if (from > 0 && space >= 0 && space < best && space < from + LEAD_CHARS) from = space + 1
  return isInsidePair(text, from) ? from + 1 : from
}

function chooseEnding(text: string, to: number): number {
  if (to >= text.length) return text.length
  const space = text.lastIndexOf(' ', to)
  const isInWord = WORD_CHAR.test(text.charAt(to)) && WORD_CHAR.test(text.charAt(to - 1))
  if (isInWord && space > to - LEAD_CHARS) return space
  return isInsidePair(text, to) ? to - 1 : to
}

/** Returns true between the two halves of a character beyond the basic plane. */
const isInsidePair = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff
}
