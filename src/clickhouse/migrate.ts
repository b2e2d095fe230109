/**
 * Brings the tables up to date: the numbered files of `migrations`, one statement each, in order, never edited.
 * Each is safe to run twice, so that two processes that start at once do no harm.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { ClickHouseClient } from '@clickhouse/client'

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{3})-[a-z0-9-]+\.sql$/

const CREATE_REGISTER = `
  CREATE TABLE IF NOT EXISTS tollgate_migrations (
    number UInt32, file String, applied_at DateTime DEFAULT now()
  ) ENGINE = ReplacingMergeTree ORDER BY number`

export interface Migration {
  readonly number: number
  readonly file: string
  readonly statement: string
}

/** Throws when a file is not named `NNN-what.sql` or a number is missing or double. */
export function readMigrations(folder: URL = FOLDER): Migration[] {
  return readdirSync(folder)
    .sort()
    .map((file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1])
      if (number !== index + 1) throw new Error(`ClickHouse migration ${file} is not number ${index + 1}`)
      return { number, file, statement: readFileSync(new URL(file, folder), 'utf8') }
    })
}

/** Returns the files that were applied now. */
export async function migrate(client: ClickHouseClient): Promise<string[]> {
  await client.command({ query: CREATE_REGISTER })
  const answer = await client.query({
    query: 'SELECT DISTINCT number FROM tollgate_migrations',
    format: 'JSONEachRow',
  })
  const known = new Set((await answer.json<{ number: number }>()).map((row) => row.number))
  const open = readMigrations().filter((migration) => !known.has(migration.number))
  for (const { number, file, statement } of open) {
    await client.command({ query: statement })
    await client.insert({ table: 'tollgate_migrations', values: [{ number, file }], format: 'JSONEachRow' })
  }
  return open.map((migration) => migration.file)
}
