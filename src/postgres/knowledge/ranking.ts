/** The statement that ranks: the lists of the plan's terms, added up by page. */
import { COVERAGE, type SearchPlan, type SearchTerm } from '../../core/search/plan.ts'
import type { Queryable } from '../connection.ts'
import type { EntryRow } from './pages.ts'
import { ENTRY_BASE, FIRST_PART_ENTRIES, NEXT_PART_ENTRIES } from './postings.ts'

/** Entries read for one search: they decide the time of a search. */
const MAX_READ_ENTRIES = 8_000
/** A common term that weighs less than this share of the heaviest is not read: it only orders what others found. */
const LEAST_WORTH = 0.25
/** The remaining entries are shared among this many terms at a time. */
const SHARING_TERMS = 6
/** How many of the best get their exact score if lists were not read to their end. */
const EXACT_PAGES = 60
/** Of a page's text, for the snippet. */
const SEARCHED_CHARS = 20_000
const LEAD_CHARS = 150
const EXCERPT_CHARS = 600

export interface RankedRow extends EntryRow {
  readonly score: number
  /** A part of the text around the first of the probes in it. */
  readonly excerpt: string
  readonly is_beginning: boolean
  readonly is_end: boolean
}

interface Ranking {
  readonly total: number
  readonly rows: readonly RankedRow[]
}

interface Reading extends SearchTerm {
  readonly parts: number
  readonly isWhole: boolean
}

const countEntries = (parts: number): number =>
  parts === 0 ? 0 : FIRST_PART_ENTRIES + (parts - 1) * NEXT_PART_ENTRIES
const countParts = (entries: number): number =>
  entries < FIRST_PART_ENTRIES ? 0 : 1 + Math.floor((entries - FIRST_PART_ENTRIES) / NEXT_PART_ENTRIES)

/**
 * Decides how far each term's lists are read: the heaviest first, each with its share of the remainder among the next
 * few.
 */
function planReading({ terms }: SearchPlan, bases: number): Reading[] {
  let left = MAX_READ_ENTRIES
  const heaviest = terms[0]?.weight ?? 0
  return terms.map((term, index) => {
    const wanted = 1 + Math.ceil(Math.max(0, term.pages - FIRST_PART_ENTRIES) / NEXT_PART_ENTRIES)
    const share = left / Math.min(terms.length - index, SHARING_TERMS)
    const fitting = term.pages <= share ? wanted : countParts(share / bases)
    const isWorthIt = term.pages <= FIRST_PART_ENTRIES || term.weight >= LEAST_WORTH * heaviest
    const isDue = index === 0 || (isWorthIt && left >= Math.min(term.pages, FIRST_PART_ENTRIES * bases))
    const parts = isDue ? Math.min(wanted, Math.max(1, fitting)) : 0
    left -= Math.min(term.pages, countEntries(parts) * bases)
    return { ...term, parts, isWhole: parts === wanted }
  })
}

/** Ranks the page with more of the query first, of two pages with similar scores. */
const coverage = (sql: Queryable, { most }: SearchPlan) =>
  sql`(1 - ${COVERAGE}::float8 + ${COVERAGE}::float8 * least(1, shared / ${most}::float8))`

export async function rankPages(
  sql: Queryable,
  baseIds: readonly string[],
  plan: SearchPlan,
  probes: readonly string[],
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<Ranking> {
  const reading = planReading(plan, baseIds.length)
  const isExact = reading.every(({ isWhole }) => isWhole) || offset >= EXACT_PAGES
  const rows = await sql<(RankedRow & { total: number })[]>`
    WITH asked AS (
      SELECT * FROM unnest(
        ${reading.map(({ term }) => term)}::text[],
        ${reading.map(({ weight }) => weight / (ENTRY_BASE - 1))}::float8[],
        ${reading.map(({ share }) => share)}::float8[],
        ${reading.map(({ parts }) => parts)}::integer[]
      ) AS asked (term, weight, share, parts)
    ),
    found AS MATERIALIZED (
      SELECT row_id, score * ${coverage(sql, plan)} AS score FROM (
        SELECT entry / ${ENTRY_BASE} AS row_id, sum(weight * (entry % ${ENTRY_BASE})) AS score, sum(share) AS shared
        FROM (
          SELECT asked.weight, asked.share, unnest(entries) AS entry
          FROM asked JOIN wiki_postings AS postings
            ON base_id = ANY(${baseIds as string[]}::text[]) AND postings.term = asked.term AND part < parts
        ) AS entries
        GROUP BY 1
      ) AS page
      WHERE shared >= ${plan.least}
    ),
    ${
      isExact
        ? sql`ranked AS (
      SELECT row_id, score FROM found ORDER BY score DESC, row_id LIMIT ${limit} OFFSET ${offset}
    )`
        : sql`best AS (SELECT * FROM found ORDER BY score DESC, row_id LIMIT ${EXACT_PAGES}),
    exact AS (
      SELECT row_id, score * ${coverage(sql, plan)} AS score FROM (
      SELECT row_id, sum(asked.weight * impact) AS score, sum(share) AS shared
      FROM best JOIN wiki_page_terms AS page USING (row_id)
        CROSS JOIN LATERAL unnest(page.terms, page.impacts) AS has (term, impact)
        JOIN asked ON asked.term = has.term
      GROUP BY 1) AS page
    ),
    ranked AS (
      SELECT row_id, coalesce(exact.score, found.score) AS score, exact.score IS NULL AS is_later
      FROM found LEFT JOIN exact USING (row_id)
      ORDER BY is_later, 2 DESC, row_id LIMIT ${limit} OFFSET ${offset}
    )`
    },
    shown AS (
      SELECT page.*, ranked.score, ${isExact ? sql`false` : sql`is_later`} AS is_later, greatest(1, coalesce((
        SELECT at FROM (
          SELECT strpos(lowered, probe) AS at, place
          FROM unnest(${probes as string[]}::text[]) WITH ORDINALITY AS probes (probe, place) OFFSET 0
        ) AS tried WHERE at > 0 ORDER BY place LIMIT 1
      ), 1) - ${LEAD_CHARS}) AS start
      FROM ranked JOIN wiki_pages AS page USING (row_id)
        CROSS JOIN LATERAL (SELECT lower(left(plain_text, ${SEARCHED_CHARS})) AS lowered OFFSET 0) AS text
    )
    SELECT (SELECT count(*) FROM found)::integer AS total, id, base_id, title, summary, tags, confidence, needs_review,
      score, substr(plain_text, start, ${EXCERPT_CHARS}) AS excerpt, start = 1 AS is_beginning,
      start + ${EXCERPT_CHARS} > length(plain_text) AS is_end
    FROM (SELECT count(*) FROM found) AS one LEFT JOIN shown ON true
    ORDER BY is_later, score DESC, row_id`
  return { total: rows[0]?.total ?? 0, rows: rows.filter(({ id }) => id !== null) }
}
