/**
 * Two roles of PostgreSQL: the owner migrates; the service has no DDL, and only ever adds to the ledger, the calls and
 * the audit record.
 */
import { onConnection, type Queryable, type Sql } from './connection.ts'
import { LOCKS } from './locks.ts'
import { migrate } from './migrate.ts'
import { inTransaction } from './transaction.ts'

const SERVICE_ROLE = 'tollgate_service'
const ONLY_ADDED_TO = ['ledger_entries', 'usage_rows', 'audit_entries', 'receipts'] as const

const onRole = <T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> =>
  onConnection(url, 'tollgate roles', work)

/** Makes the service's role where the owner may, with this password. Returns the URL that logs in with it. */
export async function makeServiceRole(ownerUrl: string, password: string): Promise<string> {
  await onRole(ownerUrl, (sql) =>
    inTransaction(sql, async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(${LOCKS.migrations})`
      const [row] = await transaction<[{ statement: string }]>`
        SELECT format('%s ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD %L', CASE WHEN EXISTS (
          SELECT FROM pg_roles WHERE rolname = ${SERVICE_ROLE}) THEN 'ALTER' ELSE 'CREATE' END,
          ${SERVICE_ROLE}::text, ${password}::text) AS statement`
      await transaction.unsafe(row.statement)
    }),
  )
  const url = new URL(ownerUrl)
  url.username = SERVICE_ROLE
  url.password = password
  return url.href
}

/** Grants the service's role its privileges, and revokes all others. Every start does so. */
export async function grantService(ownerUrl: string, serviceUrl: string): Promise<void> {
  const role = await onRole(serviceUrl, readRole)
  await onRole(ownerUrl, async (sql) => {
    // One role for both: `listExcess` reports that.
    if ((await readRole(sql)) === role) return
    await inTransaction(sql, async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(${LOCKS.migrations})`
      const [{ schema }] = await transaction<[{ schema: string }]>`SELECT current_schema() AS schema`
      const [to, where] = [transaction(role), transaction(schema)]
      await transaction`REVOKE CREATE ON SCHEMA ${where} FROM PUBLIC, ${to}`
      await transaction`GRANT USAGE ON SCHEMA ${where} TO ${to}`
      await transaction`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${where} TO ${to}`
      // UPDATE of a sequence is `setval`, which the ids of calls use.
      await transaction`GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ${where} TO ${to}`
      for (const table of ONLY_ADDED_TO)
        await transaction`REVOKE UPDATE, DELETE, TRUNCATE ON ${transaction(table)} FROM ${to}`
      for (const partition of await listPartitions(transaction))
        await transaction`REVOKE ALL ON ${transaction(partition)} FROM ${to}`
      await transaction`
        GRANT EXECUTE ON FUNCTION make_next_partition(integer), retire_partition(text, timestamptz, boolean) TO ${to}`
      await transaction`REVOKE INSERT, UPDATE, DELETE ON schema_migrations, schema_functions FROM ${to}`
    })
  })
}

/** Migrates an embedded database as its owner. Returns the URL of the service's role, with this password. */
export async function migrateEmbedded(ownerUrl: string, password: string): Promise<string> {
  await migrate(ownerUrl)
  const serviceUrl = await makeServiceRole(ownerUrl, password)
  await grantService(ownerUrl, serviceUrl)
  return serviceUrl
}

/** Migrates as the owner, where there is one, and then grants the role of `url` its privileges. */
export async function migrateAsOwner(url: string, ownerUrl: string | null): Promise<void> {
  await migrate(ownerUrl ?? url)
  if (ownerUrl !== null) await grantService(ownerUrl, url)
}

/** Returns the names of all partitions. Rows are read and written through the table that has them. */
const listPartitions = async (sql: Queryable): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class WHERE relispartition AND relkind = 'r'
      AND relnamespace = current_schema()::regnamespace`
  return rows.map(({ name }) => name)
}

const readRole = async (sql: Sql): Promise<string> => {
  const [row] = await sql<[{ role: string }]>`SELECT current_user AS role`
  return row.role
}

/**
 * Returns the privileges of the role of `url` beyond those that the service needs; empty for a role with least
 * privilege.
 */
export const listExcess = (url: string): Promise<string[]> =>
  onRole(url, async (sql) => {
    const [role] = await sql<[{ is_superuser: boolean; creates: boolean; owns: boolean }]>`
      SELECT rolsuper AS is_superuser,
        has_schema_privilege(current_schema(), 'CREATE') AS creates,
        EXISTS (SELECT FROM pg_tables
          WHERE schemaname = current_schema() AND pg_has_role(tableowner, 'MEMBER')) AS owns
      FROM pg_roles WHERE rolname = current_user`
    if (role.is_superuser) return ['is a superuser']
    const tables = await sql<{ name: string; may: string }[]>`
      SELECT name, may FROM unnest(${[...ONLY_ADDED_TO, ...(await listPartitions(sql))]}::text[]) AS name,
        unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS may
      WHERE has_table_privilege(name, may)`
    return [
      ...(role.creates ? ['may create tables'] : []),
      ...(role.owns ? ['owns tables'] : []),
      ...tables.map(({ name, may }) => `may ${may} ${name}`),
    ]
  })
