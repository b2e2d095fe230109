/** Searches the pages of knowledge bases. Ranking: src/core/search; the index: index.ts. */
import { planSearch, type SearchPlan } from '../../core/search/plan.ts'
import { parseQuery } from '../../core/search/query.ts'
import { cutSnippet } from '../../core/search/snippet.ts'
import type { Queryable } from '../connection.ts'
import { makeKbIdReader, toWikiEntry } from './pages.ts'
import { type RankedRow, rankPages } from './ranking.ts'
import type { ReadableBase, SearchPage } from './types.ts'
import { readVocabulary } from './vocabulary.ts'

const NOTHING: SearchPage = { totalHits: 0, results: [] }
/** Number of terms by which a snippet is placed. */
const MAX_PROBES = 6
const SHORTEST_CUT_PROBE = 4
/** Of the weight of the heaviest term: what weighs less is not marked. */
const LEAST_MARKED = 0.2
const SCORE_DIGITS = 4
/** Nothing else in a snippet is a tag: it is escaped. */
const MARK = '<mark>'

/** Searches all of these bases at once. */
export async function searchPages(
  sql: Queryable,
  bases: readonly ReadableBase[],
  query: string,
  range: { readonly limit: number; readonly offset: number },
): Promise<SearchPage> {
  const pages = bases.reduce((sum, base) => sum + base.pages, 0)
  const parsed = parseQuery(query)
  if (pages === 0 || parsed.words.length === 0) return NOTHING
  const baseIds = bases.filter((base) => base.pages > 0).map(({ id }) => id)
  const plan = planSearch(parsed, await readVocabulary(sql, baseIds, parsed), pages)
  if (plan.terms.length === 0) return NOTHING
  const marked = markTerms(plan)
  const { total, rows } = await rankPages(sql, baseIds, plan, toProbes(marked), range)
  const readKbId = makeKbIdReader(bases)
  return { totalHits: total, results: rows.map((row) => toResult(row, readKbId(row), marked)) }
}

/** Returns the terms to mark, the heaviest first: neither names, which stand for whole titles, nor common words. */
function markTerms({ terms }: SearchPlan): Map<string, number> {
  const heaviest = terms.reduce((most, { share }) => Math.max(most, share), 0)
  const words = terms
    .filter(({ share }) => share > 0 && share >= LEAST_MARKED * heaviest)
    .sort((one, other) => other.weight - one.weight)
  return new Map(words.map(({ term, weight }) => [term, weight]))
}

/**
 * Returns the beginnings of words with this stem: a stem lacks its word's end, and may have changed its own last
 * letter.
 */
const toProbes = (marked: ReadonlyMap<string, number>): string[] =>
  [...marked.keys()]
    .slice(0, MAX_PROBES)
    .map((term) => (/^[a-z]+$/.test(term) && term.length >= SHORTEST_CUT_PROBE ? term.slice(0, -1) : term))

/** Returns a snippet of the body; of the summary where only that has a hit. */
function findBestSnippet(row: RankedRow, marked: ReadonlyMap<string, number>): string {
  const ofBody = cutSnippet(row.excerpt, marked, { isBeginning: row.is_beginning, isEnd: row.is_end })
  if (ofBody.includes(MARK)) return ofBody
  const ofSummary = cutSnippet(row.summary, marked)
  return ofSummary.includes(MARK) ? ofSummary : ofBody
}

function toResult(row: RankedRow, kbId: string, marked: ReadonlyMap<string, number>) {
  return {
    ...toWikiEntry(row, kbId),
    snippet: findBestSnippet(row, marked),
    score: Number(row.score.toFixed(SCORE_DIGITS)),
  }
}
