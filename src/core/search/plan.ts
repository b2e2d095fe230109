/**
 * Which terms a query is searched by, how much each counts, and how far the lists of pages are read. Weights are BM25's
 * inverse document frequency, over all bases that are searched.
 */
import { editDistance, maxEdits } from './likeness.ts'
import type { ParsedQuery, QueryWord } from './query.ts'

/** A term of the vocabulary, with the pages that have it. */
export interface KnownTerm {
  readonly term: string
  readonly pages: number
}

/** The vocabulary's entries for a query. */
export interface Vocabulary {
  /** Number of pages of each term and name of the query that exists. */
  readonly known: ReadonlyMap<string, number>
  /** Terms that an unknown word may mean, by likeness. */
  readonly alike: ReadonlyMap<string, readonly KnownTerm[]>
  /** Terms that begin as the unfinished word, which is not there itself. */
  readonly completions: readonly KnownTerm[]
  /** Names that begin as the whole query. */
  readonly namesBegun: readonly KnownTerm[]
}

export interface SearchTerm {
  readonly term: string
  readonly pages: number
  /** The highest score of a page with this term. */
  readonly weight: number
  /** Its part of the coverage of the query. */
  readonly share: number
}

export interface SearchPlan {
  /** The heaviest first. */
  readonly terms: readonly SearchTerm[]
  /** A page is a hit when the shares of its terms come to this. */
  readonly least: number
  /** Sum of the shares of a page with every term. */
  readonly most: number
}

// The following constants were chosen by measurement: bench/search, the half of its queries that is for choosing.
const COMMON_WORD = 0.12
/** A pair of characters that need not be a word. */
const GRAM = 0.25
/** Weight of one inside an unknown word. */
const GRAM_OF_UNKNOWN = 0.6
/** A character of a run without spaces that is in no word of the dictionary. */
const LONE = 0.3
const ONE_ERROR = 0.7
const TWO_ERRORS = 0.4
const COMPLETION = 0.7
/** Weight of a title or alias in the query, relative to the words in it, by their part of the query. */
const NAME = 0.5
/** A title or alias that begins as the query. */
const NAME_BEGUN = 0.5
/** Part of a score that depends on the coverage of the query. */
export const COVERAGE = 0.2
/** A hit has this part of the query's weight … */
const HIT_SHARE = 0.25
/** … or this part of its heaviest word's: of a long message a page answers one point. */
const HIT_OF_HEAVIEST = 0.7
/** The heaviest of a long message; the others add little. */
const MAX_TERMS = 32
const MAX_ALIKE = 4
const MAX_COMPLETIONS = 8

const rarity = (pages: number, all: number): number => Math.log(1 + (all - pages + 0.5) / (pages + 0.5))

export function planSearch(query: ParsedQuery, vocabulary: Vocabulary, allPages: number): SearchPlan {
  const terms = new Map<string, SearchTerm>()
  const heard = new Map<string, number>()
  const put = (found: KnownTerm, factor: number, share: number): void => {
    const { term, pages } = found
    const weight = factor * rarity(Math.min(pages, allPages), allPages)
    const before = terms.get(term)
    if (before === undefined || before.weight < weight)
      terms.set(term, { term, pages, weight, share: share * weight })
  }
  for (const word of query.words) {
    const pages = vocabulary.known.get(word.term)
    const factor = weighWord(word, query, vocabulary)
    if (pages !== undefined) {
      put({ term: word.term, pages }, factor, 1)
      heard.set(word.term, factor * rarity(Math.min(pages, allPages), allPages))
      continue
    }
    for (const guess of guessWords(word, query, vocabulary)) put(guess, factor * guess.factor, 1)
  }
  // Where no word is known, a name that begins so may match.
  const most = [...terms.values()].reduce((sum, { share }) => sum + share, 0) || rarity(1, allPages)
  for (const name of query.names) {
    const pages = vocabulary.known.get(name.term)
    if (pages === undefined) continue
    const covered = name.words().reduce((sum, word) => sum + (heard.get(word) ?? 0), 0)
    const weight = NAME * covered * Math.min(1, covered / most)
    terms.set(name.term, { term: name.term, pages, weight, share: 0 })
  }
  for (const { term, pages } of vocabulary.namesBegun)
    if (!terms.has(term)) terms.set(term, { term, pages, weight: NAME_BEGUN * most, share: HIT_SHARE * most })
  const all = [...terms.values()]
    .filter(({ weight }) => weight > 0)
    .sort(byWeight)
    .slice(0, MAX_TERMS)
  const heaviest = all.reduce((top, { share }) => Math.max(top, share), 0)
  const least = Math.min(most * HIT_SHARE, heaviest * HIT_OF_HEAVIEST)
  return { terms: all, least, most }
}

const byWeight = (one: SearchTerm, other: SearchTerm): number =>
  other.weight - one.weight || (one.term < other.term ? -1 : 1)

function weighWord(word: QueryWord, query: ParsedQuery, { known }: Vocabulary): number {
  const often = 1 + Math.log(word.count)
  if (word.isCommon) return COMMON_WORD * often
  if (word.kind === 'word') return word.isLone ? LONE * often : often
  const isInUnknown = query.words.some(
    ({ kind, term }) => kind === 'word' && term.includes(word.term) && !known.has(term),
  )
  return (isInUnknown ? GRAM_OF_UNKNOWN : GRAM) * often
}

interface Guess extends KnownTerm {
  readonly factor: number
}

/**
 * Returns the terms that an unknown word may mean: the fewest errors first; for an unfinished word its completions
 * too.
 */
function guessWords(word: QueryWord, query: ParsedQuery, { alike, completions }: Vocabulary): Guess[] {
  const most = maxEdits(word.term)
  const near = (alike.get(word.term) ?? [])
    .map((found) => ({ ...found, errors: editDistance(word.term, found.term, most) }))
    .filter(({ errors }) => errors <= most)
    .sort((one, other) => one.errors - other.errors || other.pages - one.pages)
    .slice(0, MAX_ALIKE)
  const least = near[0]?.errors
  const guesses: Guess[] = near
    .filter(({ errors }) => errors === least)
    .map(({ term, pages, errors }) => ({
      term,
      pages,
      factor: errors === 1 ? ONE_ERROR : TWO_ERRORS,
    }))
  if (word.surface !== query.unfinished) return guesses
  const endings = completions.slice(0, MAX_COMPLETIONS).map((found) => ({ ...found, factor: COMPLETION }))
  return [...guesses, ...endings]
}
