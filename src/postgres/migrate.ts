/**
 * Brings a database to this program's schema. `migrations` has numbered files: tables, indexes and data. An applied file
 * is never edited. All are in one folder, because their numbers are the order in which they are applied. `functions` has
 * functions and their triggers: a file is applied again when it has changed, after all migrations.
 *
 * To change a function, edit its file. What the file cannot undo (another list of arguments, a function or trigger that
 * goes) a migration drops, with `IF EXISTS`: migrations come first, so a new database has no functions then. A change
 * that the new version needs comes with a migration too: the version before then refuses the database. Without one it
 * would restore its own functions at its next start.
 *
 * A migration that locks a table of calls in use sets a `lock_timeout` far below a second, and is tried again: whatever
 * waits for such a lock keeps every call behind it waiting.
 *
 * A column is added only to a table that no statement reads with `*`: such a statement, planned by a process of the
 * former version, fails from then on. For other tables, put new data into a separate table.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { SETTLED_LISTS } from './billing/booking.ts'
import { Refusal } from './billing/refusal.ts'
import { onConnection, type Sql } from './connection.ts'
import { LOCKS } from './locks.ts'
import { hasPartitions, makePartitions, untilLocked } from './partitions/make.ts'
import { inTransaction } from './transaction.ts'

const MIGRATIONS = new URL('./migrations/', import.meta.url)
const FUNCTIONS = new URL('./functions/', import.meta.url)
const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/
/** Time to wait for another process that migrates. */
const LOCK_WAIT_MS = 60_000
/** For a table that calls use: whatever waits for it keeps every call behind it waiting. */
const TABLE_LOCK_WAIT = '20ms'

export interface SchemaFile {
  readonly name: string
  readonly text: string
  /** SHA-256 of the text, in hex. */
  readonly checksum: string
}

export interface Migration extends SchemaFile {
  readonly version: number
}

/** Fills in the lists of columns. */
const withLists = (text: string): string => text.replace(/\{\{(\w+)\}\}/g, (_, name) => SETTLED_LISTS[name]!)

/** Returns the SQL files of a folder, in the order of their names. */
function readFiles(folder: URL, fill = (text: string): string => text): SchemaFile[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => {
      const text = fill(readFileSync(new URL(file, folder), 'utf8'))
      const checksum = createHash('sha256').update(text).digest('hex')
      return { name: file.replace(/\.sql$/, ''), text, checksum }
    })
}

/** Returns the numbered files of a folder. Throws when a number is missing or double. */
export function readMigrations(folder: URL = MIGRATIONS): Migration[] {
  return readFiles(folder).map((file, index) => {
    const version = Number(FILE_NAME.exec(`${file.name}.sql`)?.[1])
    if (version !== index + 1)
      throw new Error(`Migration ${file.name}.sql is out of order: number ${index + 1} is due`)
    return { version, ...file }
  })
}

export const readFunctions = (): SchemaFile[] => readFiles(FUNCTIONS, withLists)

/**
 * Brings the database to this program's schema. Processes that start at once wait for the first of them.
 * @returns the names of the migrations and of the files of functions that were applied
 * @throws Refusal `schema_mismatch` when the database is newer than this program, or an applied migration was edited
 */
export const migrate = (
  url: string,
  migrations: readonly Migration[] = readMigrations(),
  functions: readonly SchemaFile[] = readFunctions(),
): Promise<string[]> =>
  onConnection(url, 'tollgate migrations', async (sql) => {
    // A session's lock, not a transaction's: each file commits separately.
    await sql`SELECT set_config('lock_timeout', ${String(LOCK_WAIT_MS)}, false)`
    await sql`SELECT pg_advisory_lock(${LOCKS.migrations})`
    const applied = [...(await applyMissing(sql, migrations)), ...(await applyChanged(sql, functions))]
    if (await hasPartitions(sql)) await makePartitions(sql)
    return applied
  })

/** Creates the register where it is missing: a role without DDL can still check whether migrations are missing. */
async function createRegister(sql: Sql, table: string, columns: string): Promise<void> {
  const [{ exists }] = await sql<[{ exists: boolean }]>`SELECT to_regclass(${table}) IS NOT NULL AS exists`
  if (!exists)
    await sql.unsafe(
      `CREATE TABLE ${table} (${columns}, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    )
}

async function applyMissing(sql: Sql, migrations: readonly Migration[]): Promise<string[]> {
  await createRegister(sql, 'schema_migrations', 'version integer PRIMARY KEY, name text NOT NULL')
  const applied = await sql<{ name: string; checksum: string }[]>`
    SELECT name, checksum FROM schema_migrations ORDER BY version`
  for (const [index, row] of applied.entries()) checkApplied(row, migrations[index])
  const missing = migrations.slice(applied.length)
  for (const migration of missing) {
    const apply = () =>
      inTransaction(sql, async (transaction) => {
        await transaction.unsafe(migration.text)
        await transaction`
          INSERT INTO schema_migrations (version, name, checksum)
          VALUES (${migration.version}, ${migration.name}, ${migration.checksum})`
      })
    await untilLocked(apply)
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

async function applyChanged(sql: Sql, functions: readonly SchemaFile[]): Promise<string[]> {
  await createRegister(sql, 'schema_functions', 'name text PRIMARY KEY')
  const rows = await sql<{ name: string; checksum: string }[]>`SELECT name, checksum FROM schema_functions`
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum]))
  const changed = functions.filter(({ name, checksum }) => applied.get(name) !== checksum)
  for (const { name, text, checksum } of changed) {
    const apply = () =>
      inTransaction(sql, async (transaction) => {
        // Triggers lock their tables: a booking has all of its tables, or waits for all of them.
        await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
        await transaction`SELECT set_config('lock_timeout', ${TABLE_LOCK_WAIT}, true)`
        await transaction.unsafe(text)
        await transaction`
          INSERT INTO schema_functions (name, checksum) VALUES (${name}, ${checksum})
          ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at`
      })
    await untilLocked(apply)
  }
  return changed.map(({ name }) => `functions/${name}`)
}
