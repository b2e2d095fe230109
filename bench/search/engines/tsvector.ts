/** PostgreSQL's full-text search: a weighted tsvector behind a GIN index, any of the words, ranked by ts_rank_cd. */
import type { Sql } from '../../../src/postgres/connection.ts'
import { DEPTH } from '../report/metrics.ts'
import type { Subject } from './engine.ts'

const BATCH_PAGES = 1_000

export function tsvector(sql: Sql, configuration: 'simple' | 'english'): Subject {
  const table = `bench_${configuration}`
  return {
    name: `tsvector-${configuration}`,
    title: `tsvector, ${configuration}`,
    build: async (pages) => {
      await sql.unsafe(
        `CREATE TABLE ${table} (key text PRIMARY KEY, words tsvector NOT NULL);
         CREATE INDEX ON ${table} USING gin (words)`,
      )
      for (let from = 0; from < pages.length; from += BATCH_PAGES) {
        const batch = pages.slice(from, from + BATCH_PAGES)
        const joined = (parts: readonly string[]) => parts.join('\n')
        await sql`
          INSERT INTO ${sql(table)}
          SELECT key,
            setweight(to_tsvector(${configuration}::regconfig, title), 'A') ||
            setweight(to_tsvector(${configuration}::regconfig, names), 'B') ||
            setweight(to_tsvector(${configuration}::regconfig, summary), 'C') ||
            setweight(to_tsvector(${configuration}::regconfig, page), 'D')
          FROM unnest(
            ${batch.map(({ key }) => key)}::text[], ${batch.map(({ title }) => title)}::text[],
            ${batch.map(({ aliases, tags }) => joined([...aliases, ...tags]))}::text[],
            ${batch.map(({ summary }) => summary)}::text[], ${batch.map(({ text }) => text)}::text[]
          ) AS page (key, title, names, summary, page)`
      }
      await sql`VACUUM ANALYZE ${sql(table)}`
    },
    search: async (query) => {
      const rows = await sql<{ key: string }[]>`
        WITH asked AS (
          SELECT replace(plainto_tsquery(${configuration}::regconfig, ${query})::text, '&', '|')::tsquery AS query
        )
        SELECT key FROM ${sql(table)}, asked WHERE words @@ query
        ORDER BY ts_rank_cd(words, query, 1) DESC, key LIMIT ${DEPTH}`
      return rows.map(({ key }) => key)
    },
    indexBytes: async () => {
      const [size] = await sql<[{ bytes: bigint }]>`
        SELECT pg_total_relation_size(${table}::regclass) AS bytes`
      return Number(size.bytes)
    },
  }
}
