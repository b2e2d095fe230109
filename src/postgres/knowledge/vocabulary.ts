/** Finds the words of a query in the index, and the possible meanings of unknown ones. */
import { letterBits, maxEdits, pieceLength, reverse } from '../../core/search/likeness.ts'
import type { KnownTerm, Vocabulary } from '../../core/search/plan.ts'
import type { ParsedQuery, QueryWord } from '../../core/search/query.ts'
import type { Queryable } from '../connection.ts'

/** Further words are not matched by likeness: each costs a millisecond. */
const MAX_FUZZY_WORDS = 12
/** The limit for a long message: its meaning does not depend on one misspelt word. */
const MAX_FUZZY_OF_LONG = 4
const LONG_QUERY_WORDS = 24
/** Terms of like spelling that are compared letter by letter, for each word. */
const MAX_ALIKE = 60
const MAX_COMPLETIONS = 8
const MAX_NAMES_BEGUN = 8
/** Above every character of a term. */
const LAST_CHAR = '\u{10ffff}'

interface FoundRow {
  readonly found: 'itself' | 'alike' | 'completion' | 'name'
  /** The word of the query that may mean it. */
  readonly word: string
  readonly term: string
  readonly pages: number
}

export async function readVocabulary(
  sql: Queryable,
  baseIds: readonly string[],
  query: ParsedQuery,
): Promise<Vocabulary> {
  const rows = await select(sql, baseIds as string[], query)
  const known = new Map<string, number>()
  const alike = new Map<string, KnownTerm[]>()
  for (const { found, word, term, pages } of rows) {
    if (found === 'itself') known.set(term, pages)
    if (found === 'alike') alike.set(word, [...(alike.get(word) ?? []), { term, pages }])
  }
  const listTerms = (kind: FoundRow['found']): KnownTerm[] =>
    rows.filter(({ found }) => found === kind).map(({ term, pages }) => ({ term, pages }))
  return { known, alike, completions: listTerms('completion'), namesBegun: listTerms('name') }
}

const isFuzzyCandidate = (word: QueryWord): boolean => word.isFuzzy && !word.isCommon

function select(sql: Queryable, baseIds: string[], { words, names, unfinished, nameBegun }: ParsedQuery) {
  const terms = [...words, ...names].map(({ term }) => term)
  const likened = words
    .filter(isFuzzyCandidate)
    .sort((one, other) => other.term.length - one.term.length)
    .map(({ term }) => term)
  const mostLikened = words.length > LONG_QUERY_WORDS ? MAX_FUZZY_OF_LONG : MAX_FUZZY_WORDS
  const last = words.find(({ surface }) => surface === unfinished)?.term ?? null
  return sql<FoundRow[]>`
    WITH known AS (
      SELECT term, sum(pages)::integer AS pages FROM wiki_terms
      WHERE base_id = ANY(${baseIds}::text[]) AND term = ANY(${terms}::text[]) GROUP BY term
    ),
    unknown AS (
      SELECT * FROM unnest(
        ${likened}::text[], ${likened.map(letterBits)}::integer[], ${likened.map(maxEdits)}::integer[],
        ${likened.map((term) => term.slice(0, pieceLength(term)))}::text[],
        ${likened.map((term) => reverse(term).slice(0, pieceLength(term)))}::text[]
      ) AS word (word, letters, errors, head, tail)
      WHERE NOT EXISTS (SELECT FROM known WHERE known.term = word.word)
      LIMIT ${mostLikened}::integer
    )
    SELECT 'itself' AS found, '' AS word, term, pages FROM known
    UNION ALL
    SELECT 'alike', unknown.word, near.term, near.pages FROM unknown CROSS JOIN LATERAL (
      SELECT term, sum(pages)::integer AS pages FROM (
        SELECT term, pages, base_id FROM wiki_terms
        WHERE base_id = ANY(${baseIds}::text[]) AND term >= head AND term < head || ${LAST_CHAR}::text
          AND length(term) BETWEEN length(word) - errors AND length(word) + errors
          AND bit_count((wiki_terms.letters # unknown.letters)::bit(16)) <= 2 * errors
        UNION
        SELECT term, pages, base_id FROM wiki_terms
        WHERE base_id = ANY(${baseIds}::text[]) AND reversed >= tail AND reversed < tail || ${LAST_CHAR}::text
          AND length(reversed) BETWEEN length(word) - errors AND length(word) + errors
          AND bit_count((wiki_terms.letters # unknown.letters)::bit(16)) <= 2 * errors
      ) AS candidate GROUP BY term ORDER BY pages DESC, term LIMIT ${MAX_ALIKE}
    ) AS near
    UNION ALL
    SELECT * FROM (
      SELECT 'completion', '', term, sum(pages)::integer AS pages FROM wiki_terms
      WHERE base_id = ANY(${baseIds}::text[]) AND term >= ${unfinished}::text
        AND term < ${unfinished}::text || ${LAST_CHAR}::text
        AND NOT EXISTS (SELECT FROM known WHERE known.term = ${last}::text)
      GROUP BY term ORDER BY pages DESC, term LIMIT ${MAX_COMPLETIONS}
    ) AS completion
    UNION ALL
    SELECT * FROM (
      SELECT 'name', '', term, sum(pages)::integer AS pages FROM wiki_terms
      WHERE base_id = ANY(${baseIds}::text[]) AND term > ${nameBegun}::text
        AND term < ${nameBegun}::text || ${LAST_CHAR}::text
      GROUP BY term ORDER BY length(term), term LIMIT ${MAX_NAMES_BEGUN}
    ) AS begun`
}
