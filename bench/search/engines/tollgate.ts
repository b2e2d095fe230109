/** Tollgate's search: `searchPages` over the tables that an import fills. */
import type { Sql } from '../../../src/postgres/connection.ts'
import { PageIndexer } from '../../../src/postgres/knowledge/index.ts'
import { searchPages } from '../../../src/postgres/knowledge/search.ts'
import type { SearchPage } from '../../../src/postgres/knowledge/types.ts'
import { inTransaction, type Transaction } from '../../../src/postgres/transaction.ts'
import type { BenchPage } from '../corpus/entry.ts'
import { DEPTH } from '../report/metrics.ts'
import { BASE_ID } from './database.ts'
import type { Subject } from './engine.ts'

const BATCH_PAGES = 500
const INDEX_TABLES = ['wiki_terms', 'wiki_postings', 'wiki_page_terms']

interface TollgateSubject extends Subject {
  /** The parameters of a client's search. */
  ask(query: string, limit: number, offset: number): Promise<SearchPage>
}

export function tollgate(sql: Sql, searching: Sql): TollgateSubject {
  let pageCount = 0
  const ask = (query: string, limit: number, offset: number) =>
    searchPages(searching, [{ id: BASE_ID, kbId: 'default', name: 'bench', pages: pageCount }], query, {
      limit,
      offset,
    })
  return {
    name: 'tollgate',
    title: 'Tollgate',
    ask,
    build: async (pages) => {
      await inTransaction(sql, async (transaction) => {
        const indexer = new PageIndexer(transaction, BASE_ID)
        for (let from = 0; from < pages.length; from += BATCH_PAGES) {
          const batch = pages.slice(from, from + BATCH_PAGES)
          const rows = await insertPages(transaction, batch)
          await indexer.put(batch.map((page) => ({ ...page, rowId: rows.get(page.key)! })))
        }
        await indexer.finish()
      })
      pageCount = pages.length
      for (const table of [...INDEX_TABLES, 'wiki_pages']) await sql`VACUUM ANALYZE ${sql(table)}`
    },
    search: async (query) => {
      const { results } = await ask(query, DEPTH, 0)
      return results.map(({ id }) => id)
    },
    indexBytes: async () => {
      const [size] = await sql<[{ bytes: bigint }]>`
        SELECT sum(pg_total_relation_size(name::regclass))::bigint AS bytes FROM unnest(${INDEX_TABLES}::text[]) AS name`
      return Number(size.bytes)
    },
  }
}

/** Writes rows as the import does, with the page's key as its id. */
async function insertPages(
  transaction: Transaction,
  pages: readonly BenchPage[],
): Promise<Map<string, bigint>> {
  const rows = pages.map(({ key, title, summary, text, tags, aliases }) => ({
    id: key,
    base_id: BASE_ID,
    path: key,
    hash: Buffer.alloc(0),
    title,
    summary,
    body: text,
    plain_text: text,
    tags: tags as string[],
    aliases: aliases as string[],
    links: [] as string[],
    confidence: 'high',
    needs_review: false,
  }))
  const inserted = await transaction<{ id: string; row_id: bigint }[]>`
    INSERT INTO wiki_pages ${transaction(rows)} RETURNING id, row_id`
  return new Map(inserted.map(({ id, row_id }) => [id, row_id]))
}
