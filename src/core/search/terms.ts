/**
 * Splits text into search terms. Scripts that separate words by spaces give stemmed words. Han and kana, which do not,
 * give the words of ICU's dictionary (Intl.Segmenter; Unicode Standard Annex 29) and every pair of characters, so that
 * a word is found even when the dictionary splits it differently in a page and in a question; Hangul, whose words
 * carry their particles, gives words and pairs; Thai, Lao, Khmer and Burmese give words and triples.
 */
import { excerpt } from './excerpt.ts'
import { foldText } from './fold.ts'

interface Term {
  readonly text: string
  /** `gram`: a few neighbouring characters that need not be a word. */
  readonly kind: 'word' | 'gram'
}

/** A stretch of text in one kind of writing, folded. */
interface Run {
  readonly text: string
  readonly writing: 'spaced' | 'cjk' | 'hangul' | 'southeast'
}

const MAX_TERM_CHARS = 40
const PAIR = 2
const TRIPLE = 3

const CJK = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\u30fc'
const HANGUL = '\\p{Script=Hangul}'
const SOUTHEAST = '\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'
/** Letters and digits; an apostrophe between letters; the signs of C++, C# and F#. */
const SPACED = `(?:(?![${CJK}${HANGUL}${SOUTHEAST}])[\\p{L}\\p{N}\\p{M}])`
const RUNS = new RegExp(
  `([${CJK}]+)|([${HANGUL}]+)|([${SOUTHEAST}]+)|(${SPACED}+(?:['\\u2019]${SPACED}+)*(?:\\+\\+|#)?)`,
  'gu',
)
const ASCII_RUNS = /[a-z0-9]+(?:'[a-z0-9]+)*(?:\+\+|#)?/g
const BEYOND_ASCII = /[\u0080-\uffff]/
const APOSTROPHES = /['\u2019]/g
const POSSESSIVE = /['\u2019]s$/

/** Loads its dictionary when it is made: ten milliseconds that only search is to pay. */
let segmenter: Intl.Segmenter | undefined

/** Yields the runs of `folded` in order. */
function* splitRuns(folded: string): Generator<Run> {
  if (!BEYOND_ASCII.test(folded)) {
    for (const [text] of folded.matchAll(ASCII_RUNS)) yield { text, writing: 'spaced' }
    return
  }
  for (const [text, cjk, hangul, southeast] of folded.matchAll(RUNS)) {
    const writing = cjk ? 'cjk' : hangul ? 'hangul' : southeast ? 'southeast' : 'spaced'
    yield { text, writing }
  }
}

/** Returns the term of a word of a spaced script (folded). */
export const wordTerm = (word: string): string =>
  excerpt(stem(word.replace(POSSESSIVE, '').replace(APOSTROPHES, '')), MAX_TERM_CHARS).text

/** Returns the words of a run without spaces, by the dictionary. */
function segmentWords(text: string): string[] {
  segmenter ??= new Intl.Segmenter('zh', { granularity: 'word' })
  const words: string[] = []
  for (const { segment, isWordLike } of segmenter.segment(text)) if (isWordLike) words.push(segment)
  return words
}

/** Returns every `size` adjacent characters; a shorter text itself. */
function splitGrams(text: string, size: number): string[] {
  const chars = [...text]
  if (chars.length <= size) return [text]
  return Array.from({ length: chars.length - size + 1 }, (_, at) => chars.slice(at, at + size).join(''))
}

const gramSize = (writing: Run['writing']): number => (writing === 'southeast' ? TRIPLE : PAIR)

function splitUnspaced({ text, writing }: Run): Term[] {
  const words = writing === 'hangul' ? [text] : segmentWords(text)
  const known = new Set(words)
  const grams = splitGrams(text, gramSize(writing)).filter((gram) => !known.has(gram))
  return [
    ...words.map((word): Term => ({ text: excerpt(word, MAX_TERM_CHARS).text, kind: 'word' })),
    ...grams.map((gram): Term => ({ text: gram, kind: 'gram' })),
  ]
}

/** Returns all terms of a text, with repetitions. */
export function splitTerms(text: string): Term[] {
  const terms: Term[] = []
  for (const run of splitRuns(foldText(text))) {
    if (run.writing === 'spaced') terms.push({ text: wordTerm(run.text), kind: 'word' })
    // One by one: a run may have more terms than a call can have arguments.
    else for (const term of splitUnspaced(run)) terms.push(term)
  }
  return terms
}

/** A word of a query, or a run of characters without word boundaries, with its search terms. */
export interface QueryRun {
  readonly text: string
  readonly isSpaced: boolean
  readonly terms: readonly Term[]
}

/** Returns a text as its runs, folded: the input of a query plan. */
export function queryRuns(text: string): QueryRun[] {
  return Array.from(splitRuns(foldText(text)), (run) =>
    run.writing === 'spaced'
      ? { text: run.text, isSpaced: true, terms: [{ text: wordTerm(run.text), kind: 'word' as const }] }
      : { text: run.text, isSpaced: false, terms: splitUnspaced(run) },
  )
}

/** Prefix of the term of a whole name: no term of a text begins with it. */
const NAME_MARK = '='
const MAX_NAME_CHARS = 80

/**
 * Returns the term of a whole title or alias, equal for names that differ in case, accents, spaces and inflection.
 * Null: no words.
 */
export const nameTerm = (name: string): string | null =>
  joinName(
    Array.from(splitRuns(foldText(name)), ({ text, writing }) =>
      writing === 'spaced' ? wordTerm(text) : text,
    ),
  )

/** Joins a name. Null: no name, or one too long to look up. */
export function joinName(parts: readonly string[]): string | null {
  const joined = parts.join(' ')
  return joined === '' || joined.length > MAX_NAME_CHARS ? null : `${NAME_MARK}${joined}`
}

/** Returns the part of a name that a run gives. */
export const namePart = ({ text, isSpaced, terms }: QueryRun): string => (isSpaced ? terms[0]!.text : text)

/**
 * Returns the beginning of the terms of names that begin with these runs. The last word is not stemmed: it may be
 * unfinished.
 */
export function nameBeginning(runs: readonly QueryRun[]): string {
  const parts = runs.map(({ text, isSpaced }, index) =>
    isSpaced && index < runs.length - 1 ? wordTerm(text) : text,
  )
  return `${NAME_MARK}${parts.join(' ')}`
}

const SHORTEST_STEMMED = 4
const ENGLISH_WORD = /^[a-z]+$/
const VOWEL = /[aeiouy]/
/** A doubled consonant before an ending; l, s and z may be doubled in the word itself. */
const DOUBLED = /([bdgmnprt])\1$/

/**
 * Stems `word`, which is folded: English plural, -ing, -ed and the silent e. Words with other characters than a to z are
 * unchanged. Far weaker than Porter's stemmer: ranking tolerates words that it keeps apart, while words that a stronger
 * one merges cannot be separated again.
 */
export function stem(word: string): string {
  if (word.length < SHORTEST_STEMMED || !ENGLISH_WORD.test(word)) return word
  const singular = withoutPlural(word)
  const plain = withoutEnding(singular)
  return plain.length >= SHORTEST_STEMMED && plain.endsWith('e') ? plain.slice(0, -1) : plain
}

function withoutPlural(word: string): string {
  if (!word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1)
  if (/(?:ss|x|z|ch|sh)es$/.test(word)) return word.slice(0, -2)
  return word.slice(0, -1)
}

function withoutEnding(word: string): string {
  const ending = word.endsWith('ing') ? 3 : word.endsWith('ed') && !word.endsWith('eed') ? 2 : 0
  if (ending === 0) return word
  const rest = word.slice(0, -ending)
  if (rest.length < 3 || !VOWEL.test(rest)) return word
  return DOUBLED.test(rest) ? rest.slice(0, -1) : rest
}
