/**
 * Which terms a query is searched by, how much each counts, and how far the lists of pages are read. Weights are BM25's
 * inverse document frequency, over all bases that are searched.
 */
import { errorsBetween, errorsForgiven } from './search-likeness.ts'
import type { ParsedQuery, QueryWord } from './search-query.ts'

/** A term of the vocabulary, with the pages that have it. */
export interface KnownTerm {
  readonly term: string
  readonly pages: number
}

/** What the vocabulary has of a query. */
export interface Vocabulary {
  /** Pages of each term and name of the query that is there. */
  readonly known: ReadonlyMap<string, number>
  /** Terms that a word which is not there may stand for, by likeness. */
  readonly alike: ReadonlyMap<string, readonly KnownTerm[]>
  /** Terms that begin as the unfinished word, which is not there itself. */
  readonly completions: readonly KnownTerm[]
  /** Names that begin as the whole query. */
  readonly namesBegun: readonly KnownTerm[]
}

export interface SearchTerm {
  readonly term: string
  readonly pages: number
  /** What a page with this term gets at most. */
  readonly weight: number
  /** What counts towards being a hit. */
  readonly share: number
}

export interface SearchPlan {
  readonly terms: readonly SearchTerm[]
  /** A page is a hit when the shares of its terms come to this. */
  readonly least: number
  /** What the shares come to of a page that has everything. */
  readonly most: number
}

export const TUNING = {
  commonWord: 0.12,
  gram: 0.25,
  /** A pair inside a word that no page has. */
  gramOfUnknown: 0.6,
  oneError: 0.7,
  twoErrors: 0.4,
  completion: 0.7,
  /** A character of a run without spaces that the dictionary left alone. */
  lone: 0.3,
  name: 0.5,
  nameBegun: 0.5,
  namePower: 1,
  coverage: 0.2,
  hitShare: 0.25,
}
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
    const factor = factorOf(word, query, vocabulary)
    if (pages !== undefined) {
      put({ term: word.term, pages }, factor, 1)
      heard.set(word.term, factor * rarity(Math.min(pages, allPages), allPages))
      continue
    }
    for (const guess of guessesOf(word, query, vocabulary)) put(guess, factor * guess.factor, 1)
  }
  const most = [...terms.values()].reduce((sum, { share }) => sum + share, 0)
  for (const name of query.names) {
    const pages = vocabulary.known.get(name.term)
    if (pages === undefined) continue
    const covered = name.words.reduce((sum, word) => sum + (heard.get(word) ?? 0), 0)
    const weight = TUNING.name * covered * Math.min(1, covered / most) ** TUNING.namePower
    terms.set(name.term, { term: name.term, pages, weight, share: 0 })
  }
  for (const { term, pages } of vocabulary.namesBegun)
    if (!terms.has(term)) terms.set(term, { term, pages, weight: TUNING.nameBegun * most, share: TUNING.hitShare * most })
  const all = [...terms.values()].filter(({ weight }) => weight > 0)
  return { terms: all.sort(byPages), least: most * TUNING.hitShare, most }
}

const byPages = (one: SearchTerm, other: SearchTerm): number =>
  one.pages - other.pages || (one.term < other.term ? -1 : 1)

function factorOf(word: QueryWord, query: ParsedQuery, { known }: Vocabulary): number {
  const often = 1 + Math.log(word.count)
  if (word.isCommon) return TUNING.commonWord * often
  if (word.kind === 'word') return word.isLone ? TUNING.lone * often : often
  const isInUnknown = query.words.some(
    ({ kind, term }) => kind === 'word' && term.includes(word.term) && !known.has(term),
  )
  return (isInUnknown ? TUNING.gramOfUnknown : TUNING.gram) * often
}

interface Guess extends KnownTerm {
  readonly factor: number
}

/** What an unknown word may stand for: the fewest errors first; a word that may not be finished, its endings too. */
function guessesOf(word: QueryWord, query: ParsedQuery, { alike, completions }: Vocabulary): Guess[] {
  const most = errorsForgiven(word.term)
  const near = (alike.get(word.term) ?? [])
    .map((found) => ({ ...found, errors: errorsBetween(word.term, found.term, most) }))
    .filter(({ errors }) => errors <= most)
    .sort((one, other) => one.errors - other.errors || other.pages - one.pages)
    .slice(0, MAX_ALIKE)
  const least = near[0]?.errors
  const guesses: Guess[] = near
    .filter(({ errors }) => errors === least)
    .map(({ term, pages, errors }) => ({
      term,
      pages,
      factor: errors === 1 ? TUNING.oneError : TUNING.twoErrors,
    }))
  if (word.surface !== query.unfinished) return guesses
  const endings = completions
    .slice(0, MAX_COMPLETIONS)
    .map((found) => ({ ...found, factor: TUNING.completion }))
  return [...guesses, ...endings]
}
