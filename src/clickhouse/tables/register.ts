/** Which migrations were applied. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'

export interface Migration {
  readonly number: number
  readonly file: string
  apply(client: ClickHouseClient): Promise<void>
}

const TABLE = 'tollgate_migrations'

export async function createRegister(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: `
      CREATE TABLE IF NOT EXISTS ${TABLE} (number UInt32, file String, applied_at DateTime DEFAULT now())
      ENGINE = ReplacingMergeTree ORDER BY number`,
  })
}

/** Returns the names of the files. */
export async function readRegister(client: ClickHouseClient): Promise<Set<string>> {
  const rows = await readRows<{ file: string }>(client, { query: `SELECT DISTINCT file FROM ${TABLE}` })
  return new Set(rows.map(({ file }) => file))
}

export async function register(client: ClickHouseClient, migrations: readonly Migration[]): Promise<void> {
  const values = migrations.map(({ number, file }) => ({ number, file }))
  await client.insert({ table: TABLE, values, format: 'JSONEachRow' })
}
