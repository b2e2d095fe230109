/**
 * Brings the tables up to date: the numbered files of `migrations`, in order, never edited. A file is one statement,
 * or a module for more than that. Each is safe to run twice and by two processes at once, so that neither two starts
 * at once nor an interrupted one does harm.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from './connection.ts'

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{3})-[a-z0-9-]+\.(sql|ts|js)$/

/** The table of the migrations that were applied. */
const TABLE = 'tollgate_migrations'

interface Migration {
  readonly number: number
  readonly file: string
  apply(client: ClickHouseClient): Promise<void>
}

/** Exports of a file of the folder that is a module. */
interface MigrationModule {
  apply(client: ClickHouseClient): Promise<void>
}

function readApply(url: URL): Migration['apply'] {
  if (!url.pathname.endsWith('.sql'))
    return async (client) => {
      const module: MigrationModule = await import(url.href)
      await module.apply(client)
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
      // A module without its types, see scripts/strip-types.ts, is the same migration.
      return { number, file: file.replace(/js$/, 'ts'), apply: readApply(new URL(file, folder)) }
    })
}

/** Returns the files that were applied now. */
export async function migrate(client: ClickHouseClient): Promise<string[]> {
  await createRegister(client)
  const migrations = readMigrations()
  const applied = await readRegister(client)
  const open = migrations.filter(({ file }) => !applied.has(file))
  for (const migration of open) {
    await migration.apply(client)
    await register(client, [migration])
  }
  return open.map(({ file }) => file)
}

async function createRegister(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: `
      CREATE TABLE IF NOT EXISTS ${TABLE} (number UInt32, file String, applied_at DateTime DEFAULT now())
      ENGINE = ReplacingMergeTree ORDER BY number`,
  })
}

/** Returns the names of the files. */
async function readRegister(client: ClickHouseClient): Promise<Set<string>> {
  const rows = await readRows<{ file: string }>(client, { query: `SELECT DISTINCT file FROM ${TABLE}` })
  return new Set(rows.map(({ file }) => file))
}

async function register(client: ClickHouseClient, migrations: readonly Migration[]): Promise<void> {
  const values = migrations.map(({ number, file }) => ({ number, file }))
  await client.insert({ table: TABLE, values, format: 'JSONEachRow' })
}
