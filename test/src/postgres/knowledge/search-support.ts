/** A base filled with pages and their index, without an import: what a search is asked of. */
import { randomUUID } from 'node:crypto'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { PageIndexer } from '../../../../src/postgres/knowledge/index.ts'
import { searchPages } from '../../../../src/postgres/knowledge/search.ts'
import type { ReadableBase } from '../../../../src/postgres/knowledge/types.ts'
import { inTransaction } from '../../../../src/postgres/transaction.ts'
import { connectTo } from '../../../support/connections.ts'
import { migratedDatabase, type Teardown, type TestEngines } from '../../../support/engines.ts'

export interface Written {
  readonly title: string
  readonly aliases?: readonly string[]
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly text?: string
}

/** A pool on a new database beside the others. */
export async function openPages(t: Teardown, engines: TestEngines): Promise<Sql> {
  return connectTo(t, await migratedDatabase(engines.databaseUrl), 4)
}

export async function addBase(sql: Sql): Promise<string> {
  const id = `kb_${randomUUID()}`
  await sql`INSERT INTO accounts (id, name, kind) VALUES (${id}, 'owner', 'personal')`
  await sql`INSERT INTO knowledge_bases (id, account_id, name) VALUES (${id}, ${id}, 'base')`
  return id
}

export const indexing = <T>(
  sql: Sql,
  baseId: string,
  work: (indexer: PageIndexer) => Promise<T>,
): Promise<T> =>
  inTransaction(sql, async (transaction) => {
    const indexer = new PageIndexer(transaction, baseId)
    const done = await work(indexer)
    await indexer.finish()
    return done
  })

/** Writes the pages and indexes them. Answers their rows, in order. */
export async function addPages(sql: Sql, baseId: string, pages: readonly Written[]): Promise<bigint[]> {
  const whole = pages.map((page) => ({ aliases: [], tags: [], summary: '', text: '', ...page }))
  const rows: bigint[] = []
  for (const page of whole) {
    const path = `${randomUUID()}.md`
    const [row] = await sql<[{ row_id: bigint }]>`
      INSERT INTO wiki_pages (
        id, base_id, path, hash, title, summary, body, plain_text, tags, aliases, links, confidence, needs_review)
      VALUES (
        ${`page_${path}`}, ${baseId}, ${path}, ''::bytea, ${page.title}, ${page.summary}, ${page.text}, ${page.text},
        ${page.tags as string[]}, ${page.aliases as string[]}, '{}', 'high', false)
      RETURNING row_id`
    rows.push(row.row_id)
  }
  await indexing(sql, baseId, (indexer) =>
    indexer.put(whole.map((page, index) => ({ ...page, rowId: rows[index]! }))),
  )
  return rows
}

/** The titles that a query finds, best first. */
export async function titlesOf(sql: Sql, baseIds: readonly string[], query: string): Promise<string[]> {
  const { results } = await searchPages(sql, await readable(sql, baseIds), query, { limit: 50, offset: 0 })
  return results.map(({ title }) => title)
}

export async function readable(sql: Sql, baseIds: readonly string[]): Promise<ReadableBase[]> {
  const rows = await sql<{ base_id: string; pages: number }[]>`
    SELECT base_id, count(*)::integer AS pages FROM wiki_pages WHERE base_id = ANY(${baseIds as string[]})
    GROUP BY base_id`
  const counts = new Map(rows.map(({ base_id, pages }) => [base_id, pages]))
  return baseIds.map((id) => ({ id, kbId: id, name: id, pages: counts.get(id) ?? 0 }))
}
