/** Pages of knowledge bases as they are read: in full, by tag, by who links to them. */
import type { PageSource, WikiEntry, WikiPage } from '../../../schemas/knowledge/wiki.ts'
import { nameKey } from '../../core/search/name-key.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { ReadableBase } from './types.ts'

export interface EntryRow {
  id: string
  base_id: string
  title: string
  summary: string
  tags: string[]
  confidence: string
  needs_review: boolean
}

interface PageRow extends EntryRow {
  body: string
  aliases: string[]
  links: string[]
  source: PageSource | null
  /** Of each link the page that it leads to. */
  targets: { id: string | null; title: string | null }[]
}

const readIds = (bases: readonly ReadableBase[]): string[] => bases.map(({ id }) => id)

/** Returns the columns of an entry, of `wiki_pages` as `p`. */
const entryColumns = (sql: Queryable) => sql`
  p.id, p.base_id, p.title, p.summary, p.tags, p.confidence, p.needs_review`

/** Returns a function from a row to the reader's name of its base. */
export function makeKbIdReader(bases: readonly ReadableBase[]): (row: EntryRow) => string {
  const names = new Map(bases.map(({ id, kbId }) => [id, kbId]))
  return ({ base_id }) => names.get(base_id) ?? base_id
}

export const toWikiEntry = (row: EntryRow, kbId: string): WikiEntry => ({
  id: row.id,
  kb_id: kbId,
  title: row.title,
  summary: row.summary,
  tags: row.tags,
  confidence: row.confidence,
  needs_review: row.needs_review,
})

function toWikiEntries(bases: readonly ReadableBase[], rows: readonly EntryRow[]): WikiEntry[] {
  const readKbId = makeKbIdReader(bases)
  return rows.map((row) => toWikiEntry(row, readKbId(row)))
}

/** Returns the page with a name in a base: by its title before an alias, and of several the first by path. */
const pageNamed = (sql: Queryable, base: string, name: string) => sql`
  SELECT n.page_id FROM wiki_names AS n JOIN wiki_pages AS named ON named.id = n.page_id
  WHERE n.base_id = ${sql(base)} AND n.name = ${sql(name)}
  ORDER BY n.rank, named.path COLLATE "C" LIMIT 1`

/** Returns those of the ids that are in these bases, in the order of the ids. */
export async function readPages(
  sql: Sql,
  bases: readonly ReadableBase[],
  ids: readonly string[],
): Promise<WikiPage[]> {
  const rows = await sql<PageRow[]>`
    SELECT ${entryColumns(sql)}, p.body, p.aliases, p.links, p.source, coalesce((
      SELECT json_agg(json_build_object('id', target.id, 'title', target.title) ORDER BY l.position)
      FROM wiki_links AS l
      LEFT JOIN LATERAL (${pageNamed(sql, 'l.base_id', 'l.name')}) AS named ON true
      LEFT JOIN wiki_pages AS target ON target.id = named.page_id
      WHERE l.page_id = p.id), '[]') AS targets
    FROM wiki_pages AS p
    WHERE p.id = ANY (${ids as string[]}::text[]) AND p.base_id = ANY (${readIds(bases)}::text[])`
  const readKbId = makeKbIdReader(bases)
  const pages = new Map(rows.map((row) => [row.id, toWikiPage(row, readKbId(row))]))
  return ids.flatMap((id) => pages.get(id) ?? [])
}

const toWikiPage = (row: PageRow, kbId: string): WikiPage => ({
  id: row.id,
  kb_id: kbId,
  title: row.title,
  summary: row.summary,
  body: row.body,
  tags: row.tags,
  aliases: row.aliases,
  links: row.links,
  confidence: row.confidence,
  needs_review: row.needs_review,
  source: row.source,
  outgoing_links: row.targets.map(({ id, title }, index) => ({
    id,
    resolved: id !== null,
    title: title ?? row.links[index] ?? '',
  })),
})

/** Lists tags, the most used first, at most `limit`. Of several spellings of a tag the most used. */
export async function listTags(
  sql: Sql,
  bases: readonly ReadableBase[],
  limit: number,
): Promise<{ tag: string; count: number }[]> {
  const rows = await sql<{ tag: string; count: bigint }[]>`
    SELECT (array_agg(tag ORDER BY pages DESC, tag COLLATE "C"))[1] AS tag, sum(pages) AS count
    FROM wiki_tag_counts WHERE base_id = ANY (${readIds(bases)}::text[])
    GROUP BY name ORDER BY count DESC, name COLLATE "C" LIMIT ${limit}`
  return rows.map(({ tag, count }) => ({ tag, count: Number(count) }))
}

export interface ListedPage extends WikiEntry {
  /** Of its file, below the imported folder. */
  readonly path: string
  readonly updatedAt: Date
}

/** Lists the pages of a base by path: those after a path, at most `limit`. */
export async function listPages(
  sql: Sql,
  base: ReadableBase,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<ListedPage[]> {
  const rows = await sql<(EntryRow & { path: string; updated_at: Date })[]>`
    SELECT ${entryColumns(sql)}, p.path, p.updated_at FROM wiki_pages AS p
    WHERE p.base_id = ${base.id} ${after === null ? sql`` : sql`AND p.path > ${after}`}
    ORDER BY p.path LIMIT ${limit}`
  return rows.map((row) => ({
    ...toWikiEntry(row, base.kbId),
    path: row.path,
    updatedAt: row.updated_at,
  }))
}

/** Lists pages by title, at most `limit`. */
export async function listPagesByTag(
  sql: Sql,
  bases: readonly ReadableBase[],
  tag: string,
  limit: number,
): Promise<WikiEntry[]> {
  const rows = await sql<EntryRow[]>`
    WITH tagged AS MATERIALIZED (
      SELECT page_id, title FROM wiki_tags
      WHERE base_id = ANY (${readIds(bases)}::text[]) AND name = ${nameKey(tag)}
      ORDER BY title, page_id LIMIT ${limit}
    )
    SELECT ${entryColumns(sql)} FROM tagged JOIN wiki_pages AS p ON p.id = tagged.page_id
    ORDER BY tagged.title, p.id`
  return toWikiEntries(bases, rows)
}

/**
 * Lists pages of the same base that link to this one, by title, at most `limit`. Null: the page is not in these bases.
 * A name that also leads to another page does not count.
 */
export async function listBacklinks(
  sql: Sql,
  bases: readonly ReadableBase[],
  pageId: string,
  limit: number,
): Promise<WikiEntry[] | null> {
  const [page] = await sql`
    SELECT FROM wiki_pages WHERE id = ${pageId} AND base_id = ANY (${readIds(bases)}::text[])`
  if (page === undefined) return null
  const rows = await sql<EntryRow[]>`
    WITH own AS MATERIALIZED (
      SELECT DISTINCT own.base_id, own.name FROM wiki_names AS own
      WHERE own.page_id = ${pageId} AND own.page_id = (${pageNamed(sql, 'own.base_id', 'own.name')})
    ), linking AS MATERIALIZED (
      SELECT DISTINCT l.title, l.page_id FROM own JOIN wiki_links AS l ON l.base_id = own.base_id AND l.name = own.name
      ORDER BY l.title, l.page_id LIMIT ${limit}
    )
    SELECT ${entryColumns(sql)} FROM linking JOIN wiki_pages AS p ON p.id = linking.page_id
    ORDER BY linking.title, p.id`
  return toWikiEntries(bases, rows)
}
