/**
 * Brings the tables up to date: the numbered files of `migrations`, in order, never edited. A file is one statement, or
 * a module where it takes more than that. Each is safe to run twice and by two processes at once, so that neither a
 * start of two nor one that was broken off does harm.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { ClickHouseClient } from '@clickhouse/client'

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{3})-[a-z0-9-]+\.(sql|ts)$/

const CREATE_REGISTER = `
  CREATE TABLE IF NOT EXISTS tollgate_migrations (
    number UInt32, file String, applied_at DateTime DEFAULT now()
  ) ENGINE = ReplacingMergeTree ORDER BY number`

/** What a migration may ask of the rest of the service. */
export interface MigrationContext {
  /** Calls with ids up to this one are in the log for good: none of them is sent again. Default: all that are there. */
  readonly copiedUpto?: () => Promise<bigint>
}

/** What a `.ts` file of the folder exports. */
interface MigrationModule {
  apply(client: ClickHouseClient, context: MigrationContext): Promise<void>
}

export interface Migration {
  readonly number: number
  readonly file: string
  apply(client: ClickHouseClient, context: MigrationContext): Promise<void>
}

function applyOf(url: URL): Migration['apply'] {
  if (url.pathname.endsWith('.ts'))
    return async (client, context) => {
      const module: MigrationModule = await import(url.href)
      await module.apply(client, context)
    }
  return async (client) => {
    await client.command({ query: readFileSync(url, 'utf8') })
  }
}

/** Throws when a file is not named `NNN-what.sql` or `.ts`, or a number is missing or double. */
export function readMigrations(folder: URL = FOLDER): Migration[] {
  return readdirSync(folder)
    .sort()
    .map((file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1])
      if (number !== index + 1) throw new Error(`ClickHouse migration ${file} is not number ${index + 1}`)
      return { number, file, apply: applyOf(new URL(file, folder)) }
    })
}

/** Returns the files that were applied now. */
export async function migrate(client: ClickHouseClient, context: MigrationContext = {}): Promise<string[]> {
  await client.command({ query: CREATE_REGISTER })
  const answer = await client.query({
    query: 'SELECT DISTINCT number FROM tollgate_migrations',
    format: 'JSONEachRow',
  })
  const known = new Set((await answer.json<{ number: number }>()).map((row) => row.number))
  const open = readMigrations().filter((migration) => !known.has(migration.number))
  for (const { number, file, apply } of open) {
    await apply(client, context)
    await client.insert({ table: 'tollgate_migrations', values: [{ number, file }], format: 'JSONEachRow' })
  }
  return open.map((migration) => migration.file)
}
