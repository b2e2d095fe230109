/**
 * Pages on their way into a base. Files are read over minutes, and a transaction waits for nothing but its own
 * statements: so they are collected here first, and taken over all at once.
 */
import { newId } from '../../core/keys/ids.ts'
import { nameKey } from '../../core/search/name-key.ts'
import type { Sql } from '../connection.ts'
import type { Transaction } from '../transaction.ts'
import type { PageDraft } from './types.ts'

/** Rows of a killed import are of no use after this time. */
const STALE_AFTER = '1 day'
/** A title leads to its page before another page's alias does. */
const TITLE_RANK = 0
const ALIAS_RANK = 1
/** Beside a name and a tag it must fit into an entry of an index, which has 2,704 bytes. */
const SORT_KEY_MAX_CHARS = 100

/** Deletes the rows of killed imports, in any base. */
export async function clearStale(sql: Sql): Promise<void> {
  await sql`DELETE FROM wiki_staging WHERE staged_at < now() - ${STALE_AFTER}::interval`
}

export async function clearStaged(sql: Sql, importId: string): Promise<void> {
  await sql`DELETE FROM wiki_staging WHERE import_id = ${importId}`
}

/** Positions count from 1, in the order of the drafts. */
const toRow = (draft: PageDraft, position: number) => ({
  position,
  id: newId('page'),
  path: draft.path,
  hash: draft.hash.toString('hex'),
  title: draft.title,
  summary: draft.summary,
  body: draft.body,
  plain_text: draft.text,
  tags: draft.tags,
  aliases: draft.aliases,
  links: draft.links,
  confidence: draft.confidence,
  needs_review: draft.needsReview,
  source: draft.source,
  name_keys: [draft.title, ...draft.aliases].map(nameKey),
  link_keys: draft.links.map(nameKey),
  tag_keys: draft.tags.map(nameKey),
})

/**
 * Stages drafts. Resolves with the paths of all drafts, in their order.
 * @throws the errors of the drafts
 */
export async function stageDrafts(
  sql: Sql,
  importId: string,
  drafts: AsyncIterable<readonly PageDraft[]>,
): Promise<Set<string>> {
  const paths = new Set<string>()
  for await (const batch of drafts) {
    const rows = batch.map((draft) => {
      paths.add(draft.path)
      return toRow(draft, paths.size)
    })
    if (rows.length === 0) continue
    await sql`
      INSERT INTO wiki_staging (
        import_id, position, id, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence,
        needs_review, source, name_keys, link_keys, tag_keys)
      SELECT ${importId}, position, id, path, decode(hash, 'hex'), title, summary, body, plain_text, tags, aliases,
        links, confidence, needs_review, source, name_keys, link_keys, tag_keys
      FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS draft (
        position integer, id text, path text, hash text, title text, summary text, body text, plain_text text,
        tags text[], aliases text[], links text[], confidence text, needs_review boolean, source json,
        name_keys text[], link_keys text[], tag_keys text[])`
  }
  return paths
}

interface StagedRow {
  readonly path: string
  readonly title: string
  readonly summary: string
  readonly plain_text: string
  readonly tags: string[]
  readonly aliases: string[]
  /** Of its source file in the object store. */
  readonly source_key: string | null
  readonly name_keys: string[]
  readonly link_keys: string[]
  readonly tag_keys: string[]
}

export interface MergedPage extends StagedRow {
  readonly row_id: bigint
  readonly id: string
  readonly isNew: boolean
  /** Of the source file that it named before. */
  readonly formerSourceKey: string | null
}

/**
 * Turns the staged drafts with these positions, both included, into pages. Returns those that are new or have changed,
 * except for a page that another import has made equal meanwhile. The statements are joined here: PostgreSQL has no
 * statistics of rows staged just now, and would take the slow way.
 */
export async function mergeStaged(
  transaction: Transaction,
  importId: string,
  baseId: string,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<MergedPage[]> {
  const staged = transaction`import_id = ${importId} AND position BETWEEN ${first} AND ${last}`
  const drafts = await transaction<StagedRow[]>`
    SELECT path, title, summary, plain_text, tags, aliases, source ->> 'r2_key' AS source_key, name_keys, link_keys,
      tag_keys
    FROM wiki_staging WHERE ${staged} ORDER BY position`
  const paths = drafts.map(({ path }) => path)
  const former = await transaction<{ path: string; source_key: string | null }[]>`
    SELECT path, source ->> 'r2_key' AS source_key FROM wiki_pages
    WHERE base_id = ${baseId} AND path = ANY (${paths}::text[])`
  const stored = await transaction<{ row_id: bigint; id: string; path: string }[]>`
    INSERT INTO wiki_pages (
      id, base_id, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence, needs_review, source)
    SELECT id, ${baseId}, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence,
      needs_review, source
    FROM wiki_staging WHERE ${staged} ORDER BY position
    ON CONFLICT (base_id, path) DO UPDATE SET
      hash = excluded.hash, title = excluded.title, summary = excluded.summary, body = excluded.body,
      plain_text = excluded.plain_text, tags = excluded.tags, aliases = excluded.aliases, links = excluded.links,
      confidence = excluded.confidence, needs_review = excluded.needs_review, source = excluded.source,
      updated_at = now()
    WHERE wiki_pages.hash <> excluded.hash
    RETURNING row_id, id, path`
  const formerKeys = new Map(former.map(({ path, source_key }) => [path, source_key]))
  const rows = new Map(stored.map((row) => [row.path, row]))
  return drafts.flatMap((draft) => {
    const row = rows.get(draft.path)
    if (row === undefined) return []
    const isNew = !formerKeys.has(draft.path)
    return [{ ...draft, ...row, isNew, formerSourceKey: formerKeys.get(draft.path) ?? null }]
  })
}

/** Replaces the names, links and tags of pages that were just merged. */
export async function mergeStagedNames(
  transaction: Transaction,
  baseId: string,
  taken: readonly MergedPage[],
): Promise<void> {
  const changed = taken.filter(({ isNew }) => !isNew).map(({ id }) => id)
  if (changed.length > 0) {
    await transaction`DELETE FROM wiki_names WHERE page_id = ANY (${changed}::text[])`
    await transaction`DELETE FROM wiki_links WHERE page_id = ANY (${changed}::text[])`
    await transaction`DELETE FROM wiki_tags WHERE page_id = ANY (${changed}::text[])`
  }
  const names = taken.flatMap(({ id, name_keys }) =>
    name_keys.map((name, place) => ({ id, name, rank: place === 0 ? TITLE_RANK : ALIAS_RANK })),
  )
  await transaction`
    INSERT INTO wiki_names (base_id, name, rank, page_id)
    SELECT ${baseId}, name, rank, page_id
    FROM unnest(${readColumn(names, 'name')}::text[], ${readColumn(names, 'rank')}::smallint[], ${readColumn(names, 'id')}::text[])
      AS named (name, rank, page_id)
    WHERE name <> ''
    ON CONFLICT DO NOTHING`
  const links = taken.flatMap(({ id, link_keys, name_keys }) =>
    link_keys.map((name, i) => ({ id, name, position: i + 1, title: sortKey(name_keys) })),
  )
  await transaction`
    INSERT INTO wiki_links (page_id, position, base_id, name, title)
    SELECT page_id, position, ${baseId}, name, title
    FROM unnest(
      ${readColumn(links, 'id')}::text[], ${readColumn(links, 'position')}::integer[], ${readColumn(links, 'name')}::text[],
      ${readColumn(links, 'title')}::text[]) AS link (page_id, position, name, title)`
  const tags = taken.flatMap(({ id, tags, tag_keys, name_keys }) =>
    tag_keys.map((name, i) => ({ id, name, tag: tags[i] ?? name, title: sortKey(name_keys) })),
  )
  await transaction`
    INSERT INTO wiki_tags (base_id, name, page_id, tag, title)
    SELECT ${baseId}, name, page_id, tag, title
    FROM unnest(
      ${readColumn(tags, 'name')}::text[], ${readColumn(tags, 'id')}::text[], ${readColumn(tags, 'tag')}::text[],
      ${readColumn(tags, 'title')}::text[]) AS tagged (name, page_id, tag, title)
    WHERE name <> ''
    ON CONFLICT DO NOTHING`
}

/** Counts the tags of a base. Called once all its pages are final. */
export async function countTags(transaction: Transaction, baseId: string): Promise<void> {
  await transaction`DELETE FROM wiki_tag_counts WHERE base_id = ${baseId}`
  await transaction`
    INSERT INTO wiki_tag_counts (base_id, name, tag, pages)
    SELECT ${baseId}, name, mode() WITHIN GROUP (ORDER BY tag), count(*)
    FROM wiki_tags WHERE base_id = ${baseId} GROUP BY name`
}

/** Returns the sort key. The first name is the title. */
const sortKey = ([title = '']: readonly string[]): string => [...title].slice(0, SORT_KEY_MAX_CHARS).join('')

const readColumn = <Row, Field extends keyof Row>(rows: readonly Row[], field: Field): Row[Field][] =>
  rows.map((row) => row[field])
