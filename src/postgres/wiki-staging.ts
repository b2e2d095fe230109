/**
 * Pages on their way into a base. Files are read over minutes, and a transaction waits for nothing but its own
 * statements: so they are collected here first, and taken over all at once.
 */
import { newId } from '../core/ids.ts'
import { nameKey } from '../core/name-key.ts'
import type { Sql } from './connection.ts'
import type { Transaction } from './transaction.ts'
import type { PageDraft } from './wiki-types.ts'

/** What a killed import left is of no use to anybody after that time. */
const STALE_AFTER = '1 day'

/** Of an import that was killed, in whatever base. */
export async function clearStale(sql: Sql): Promise<void> {
  await sql`DELETE FROM wiki_staging WHERE staged_at < now() - ${STALE_AFTER}::interval`
}

export async function clearStaged(sql: Sql, importId: string): Promise<void> {
  await sql`DELETE FROM wiki_staging WHERE import_id = ${importId}`
}

/** Positions count from 1, in the order of the drafts. */
const rowOf = (draft: PageDraft, position: number) => ({
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

/** Answers the paths of all drafts, in their order. @throws what the drafts throw */
export async function stageDrafts(
  sql: Sql,
  importId: string,
  drafts: AsyncIterable<readonly PageDraft[]>,
): Promise<Set<string>> {
  const paths = new Set<string>()
  for await (const batch of drafts) {
    const rows = batch.map((draft) => {
      paths.add(draft.path)
      return rowOf(draft, paths.size)
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

export interface TakenPage {
  readonly row_id: bigint
  readonly id: string
  readonly position: number
  readonly is_new: boolean
  readonly title: string
  readonly summary: string
  readonly plain_text: string
  readonly tags: string[]
  readonly aliases: string[]
  /** Of the source file that the page names now, and that it named before. */
  readonly source_key: string | null
  readonly former_source_key: string | null
}

/**
 * Makes pages of the staged drafts with these positions, both included. Answers those that are new or have changed; a
 * page that another import has made the same meanwhile is neither.
 */
export async function takeOver(
  transaction: Transaction,
  importId: string,
  baseId: string,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<TakenPage[]> {
  return transaction<TakenPage[]>`
    WITH draft AS (
      SELECT * FROM wiki_staging WHERE import_id = ${importId} AND position BETWEEN ${first} AND ${last}
    ), former AS (
      SELECT path, source ->> 'r2_key' AS source_key FROM wiki_pages
      WHERE base_id = ${baseId} AND path IN (SELECT path FROM draft)
    ), stored AS (
      INSERT INTO wiki_pages (
        id, base_id, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence, needs_review,
        source)
      SELECT id, ${baseId}, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence,
        needs_review, source
      FROM draft ORDER BY position
      ON CONFLICT (base_id, path) DO UPDATE SET
        hash = excluded.hash, title = excluded.title, summary = excluded.summary, body = excluded.body,
        plain_text = excluded.plain_text, tags = excluded.tags, aliases = excluded.aliases, links = excluded.links,
        confidence = excluded.confidence, needs_review = excluded.needs_review, source = excluded.source,
        updated_at = now()
      WHERE wiki_pages.hash <> excluded.hash
      RETURNING row_id, id, path
    )
    SELECT stored.row_id, stored.id, draft.position, former.path IS NULL AS is_new, draft.title, draft.summary,
      draft.plain_text, draft.tags, draft.aliases, draft.source ->> 'r2_key' AS source_key,
      former.source_key AS former_source_key
    FROM stored JOIN draft USING (path) LEFT JOIN former USING (path)
    ORDER BY draft.position`
}

/** Names, links and tags of pages that were just taken over, in place of what there was of them. */
export async function takeOverNames(
  transaction: Transaction,
  importId: string,
  baseId: string,
  taken: readonly TakenPage[],
): Promise<void> {
  const changed = taken.filter(({ is_new }) => !is_new).map(({ id }) => id)
  if (changed.length > 0) {
    await transaction`DELETE FROM wiki_names WHERE page_id = ANY (${changed}::text[])`
    await transaction`DELETE FROM wiki_links WHERE page_id = ANY (${changed}::text[])`
    await transaction`DELETE FROM wiki_tags WHERE page_id = ANY (${changed}::text[])`
  }
  const ids = taken.map(({ id }) => id)
  const positions = taken.map(({ position }) => position)
  const drafts = transaction`
    FROM unnest(${ids}::text[], ${positions}::integer[]) AS page (id, position)
    JOIN wiki_staging AS draft ON draft.import_id = ${importId} AND draft.position = page.position`
  await transaction`
    INSERT INTO wiki_names (base_id, name, rank, page_id)
    SELECT ${baseId}, name, least(place - 1, 1), page.id
    ${drafts}, unnest(draft.name_keys) WITH ORDINALITY AS named (name, place)
    WHERE name <> ''
    ON CONFLICT DO NOTHING`
  await transaction`
    INSERT INTO wiki_links (page_id, position, base_id, name)
    SELECT page.id, place, ${baseId}, name
    ${drafts}, unnest(draft.link_keys) WITH ORDINALITY AS link (name, place)`
  await transaction`
    INSERT INTO wiki_tags (base_id, name, page_id, tag)
    SELECT ${baseId}, name, page.id, tag
    ${drafts}, unnest(draft.tag_keys, draft.tags) AS tagged (name, tag)
    WHERE name <> ''
    ON CONFLICT DO NOTHING`
}
