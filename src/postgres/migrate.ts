import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Refusal } from './billing/refusal.ts'
import { connect, type Sql } from './connection.ts'
import { LOCKS } from './locks.ts'
import { inTransaction } from './transaction.ts'

const MIGRATIONS = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/
/** How long to wait for another process that migrates just now. */
const LOCK_WAIT_MS = 60_000
/** The client (3.4.9) waits for ever for the end of a connection that was lost while it was being set up. */
const CLOSE_SECONDS = 1

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  /** SHA-256 of the text, in hex: an applied file is never edited. */
  readonly checksum: string
}

/** The numbered files of a folder, in order. */
export function readMigrations(folder: URL = MIGRATIONS): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file, index) => {
      const version = Number(FILE_NAME.exec(file)?.[1])
      if (version !== index + 1)
        throw new Error(`Migration ${file} is out of order: number ${index + 1} is due`)
      const text = readFileSync(new URL(file, folder), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { version, name: file.replace(/\.sql$/, ''), text, checksum }
    })
}

/**
 * Brings the database to this program's schema. Processes that start at once wait for the first of them.
 * @returns the names of the migrations that were applied
 * @throws Refusal `schema_mismatch` when the database is newer than this program or an applied file was edited
 */
export async function migrate(
  url: string,
  migrations: readonly Migration[] = readMigrations(),
): Promise<string[]> {
  const sql = connect(url, { max: 1, name: 'tollgate migrations' })
  try {
    // A session's lock, not a transaction's: each migration commits by itself.
    await sql`SELECT set_config('lock_timeout', ${String(LOCK_WAIT_MS)}, false)`
    await sql`SELECT pg_advisory_lock(${LOCKS.migrations})`
    return await applyMissing(sql, migrations)
  } finally {
    await sql.end({ timeout: CLOSE_SECONDS })
  }
}

async function applyMissing(sql: Sql, migrations: readonly Migration[]): Promise<string[]> {
  const [{ exists }] = await sql<
    [{ exists: boolean }]
  >`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`
  // A role without DDL may look whether anything is missing.
  if (!exists)
    await sql`
      CREATE TABLE schema_migrations (
        version    integer PRIMARY KEY,
        name       text NOT NULL,
        checksum   text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`
  const applied = await sql<{ version: number; name: string; checksum: string }[]>`
    SELECT version, name, checksum FROM schema_migrations ORDER BY version`
  for (const row of applied) checkApplied(row, migrations[row.version - 1])
  const missing = migrations.slice(applied.length)
  for (const migration of missing) {
    await inTransaction(sql, async (transaction) => {
      await transaction.unsafe(migration.text)
      await transaction`
        INSERT INTO schema_migrations (version, name, checksum)
        VALUES (${migration.version}, ${migration.name}, ${migration.checksum})`
    })
  }
  return missing.map((migration) => migration.name)
}

function checkApplied(row: { name: string; checksum: string }, known: Migration | undefined): void {
  if (known === undefined) {
    throw new Refusal(
      'schema_mismatch',
      `The database was made by a newer version of Tollgate: it has migration ${row.name}, which this version does not know`,
    )
  }
  if (known.name !== row.name || known.checksum !== row.checksum) {
    throw new Refusal(
      'schema_mismatch',
      `Migration ${row.name} was applied to this database with another content than ${known.name} has now`,
    )
  }
}
