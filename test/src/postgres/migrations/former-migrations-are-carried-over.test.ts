/** A database of the eighteen former migrations becomes one of the present ones: the same schema, and every row. */
import t, { type Test } from 'tap'
import type { Settlement } from '../../../../schemas/events/event.ts'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { migrate, readFunctions, readMigrations } from '../../../../src/postgres/migrate.ts'
import { excessOf, grantService, makeServiceRole, migrateAsOwner } from '../../../../src/postgres/roles.ts'
import { connectTo } from '../../../support/connections.ts'
import { freshDatabase, startEngines } from '../../../support/engines.ts'
import { newAccount, settlement } from '../support.ts'

const { databaseUrl } = await startEngines(t, { only: ['postgres'] })
const FORMER = readMigrations(new URL('../../../fixtures/postgres-before-squash/', import.meta.url))
const PRESENT = readMigrations()
/** Columns that were added since. */
const ADDED = [
  'opens_draft',
  'requests_per_minute',
  'concurrency',
  'allowed_addresses',
  'callback_url',
  'low_below',
  'upstream_cost',
  'journal_id',
  'admission',
]
/** Number of migrations that the former ones were squashed into. */
const SQUASHED = 6

function open(t: Test, url: string): Sql {
  const sql = connectTo(t, url)
  return sql
}

/** A database as the former program left it, with the first so many of its migrations. */
async function formerDatabase(t: Test, count = FORMER.length): Promise<{ url: string; sql: Sql }> {
  const url = await freshDatabase(databaseUrl)
  await migrate(url, FORMER.slice(0, count), [])
  const sql = open(t, url)
  await sql`DROP TABLE schema_functions`
  return { url, sql }
}

/** What pg_catalog says of each object in the schema, grants included: a text for each, sorted. */
async function describe(sql: Sql): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    WITH relations AS (SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
    SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, reloptions::text, acl.grants) AS line
      FROM relations, LATERAL (
        SELECT string_agg(grantee::regrole || ':' || privilege_type, ',' ORDER BY grantee, privilege_type) AS grants
        FROM aclexplode(relacl)) AS acl
    UNION ALL
    SELECT concat_ws(' ', 'column', relname, row_number() OVER (PARTITION BY c.oid ORDER BY attnum), attname,
        format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' END, attidentity, attgenerated,
        attstorage, attcompression, attcollation::regcollation, pg_get_expr(adbin, adrelid))
      FROM relations AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum
    UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
      FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
    UNION ALL
    SELECT concat_ws(' ', pg_get_indexdef(i.indexrelid), i.indisvalid) FROM pg_index AS i JOIN relations ON oid = i.indexrelid
    UNION ALL
    SELECT concat_ws(' ', pg_get_triggerdef(g.oid), tgenabled) FROM pg_trigger AS g JOIN relations AS c ON c.oid = tgrelid
      WHERE NOT tgisinternal
    UNION ALL
    SELECT concat_ws(' ', pg_get_functiondef(oid), proacl::text)
      FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 'view ' || viewname || definition FROM pg_views WHERE schemaname = current_schema()
    UNION ALL
    SELECT concat_ws(' ', 'sequence', s.*, refobjid::regclass, refobjsubid)
      FROM pg_sequences AS s
      LEFT JOIN pg_depend ON objid = quote_ident(sequencename)::regclass AND deptype IN ('a', 'i')
        AND refclassid = 'pg_class'::regclass
      WHERE schemaname = current_schema()
    UNION ALL
    SELECT concat_ws(' ', 'schema', nspacl::text) FROM pg_namespace WHERE oid = current_schema()::regnamespace`
  return rows.map(({ line }) => line).sort()
}

/** The rows of each table, as one hash; without columns that were added since, and without the record of what was applied. */
async function hashRows(sql: Sql): Promise<Record<string, string>> {
  const tables = await sql<{ name: string }[]>`
    SELECT tablename AS name FROM pg_tables
    WHERE schemaname = current_schema() AND tablename NOT LIKE 'schema_%' ORDER BY 1`
  const hashes: Record<string, string> = {}
  for (const { name } of tables) {
    const [row] = await sql<[{ hash: string }]>`
      SELECT count(*) || ' ' || md5(coalesce(string_agg(fields, chr(10) ORDER BY fields), '')) AS hash
      FROM (SELECT (to_jsonb(r) - ${ADDED}::text[])::text AS fields FROM ${sql(name)} AS r) AS rows`
    hashes[name] = row.hash
  }
  return hashes
}

/** Arguments of the former booking that have no default, in their order. */
const BOOKED_BEFORE = [
  ...(['request_id', 'account_id', 'key_id', 'model', 'protocol', 'stream', 'status'] as const),
  ...(['error_code', 'error_message', 'input_tokens', 'output_tokens', 'cached_tokens'] as const),
  ...(['cache_write_tokens', 'reasoning_tokens', 'server_tool_calls', 'unit_count', 'unit_type'] as const),
  ...(['cost', 'estimate', 'usage_source', 'submitted_at', 'created_at', 'latency_ms', 'ttfb_ms'] as const),
  ...(['channel_id', 'attempts_count'] as const),
]

/** Books a call as the former program did, which does not know later fields. */
async function bookAsBefore(sql: Sql, call: Settlement): Promise<void> {
  const lists = BOOKED_BEFORE.map((field) => `'{${call[field] ?? 'NULL'}}'`)
  await sql.unsafe(`SELECT book_settlements(${[...lists, "'{NULL}'"].join(', ')})`)
}

t.test('the schema is the one of a new database, with the grants of the service', async (t) => {
  const { url, sql } = await formerDatabase(t)
  const fresh = await freshDatabase(databaseUrl)
  await migrate(fresh)
  t.notSame(
    await describe(sql),
    await describe(open(t, fresh)),
    'functions are not recorded, one constraint is not validated',
  )
  for (const each of [url, fresh]) await migrateAsOwner(await makeServiceRole(each, 'test'), each)
  const carried = await describe(sql)
  t.same(carried, await describe(open(t, fresh)))
  t.ok(carried.length > 400, `${carried.length} objects are compared`)
})

t.test('nothing is lost, and the service goes on', async (t) => {
  const { url, sql } = await formerDatabase(t)
  const masterKey = generateMasterKey()
  const before = await openDatabase({ url, masterKey })
  const accountId = await newAccount(before)
  const keyId = 'key_former'
  await sql`
    INSERT INTO api_keys (id, account_id, name, kind, prefix, key_hash)
    VALUES (${keyId}, ${accountId}, 'first', 'employee', 'sk-tollgate-00000000', ${Buffer.alloc(32)})`
  await sql`
    INSERT INTO grants (key_id, account_id, spend_cap) VALUES (${keyId}, ${accountId}, ${100n * ONE_CREDIT})`
  const call = settlement(accountId, { key_id: keyId })
  await bookAsBefore(sql, call)
  await sql`
    INSERT INTO wallet_reservations (ref, account_id, amount, expires_at)
    VALUES ('req_open', ${accountId}, 1, now() + interval '1 hour')`
  await sql`INSERT INTO knowledge_bases (id, account_id, name) VALUES ('kb_1', ${accountId}, 'handbook')`
  const { installedAt } = before
  await before.close()
  const rows = await hashRows(sql)
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
  const later = PRESENT.slice(SQUASHED).map(({ name }) => name)
  const functions = readFunctions().map(({ name }) => `functions/${name}`)
  t.same(applied.flat().sort(), [...later, ...functions].sort())
  t.match(await hashRows(sql), rows)
  t.same(
    [...(await sql`SELECT version, name, checksum FROM schema_migrations ORDER BY version`)],
    PRESENT.map(({ version, name, checksum }) => ({ version, name, checksum })),
  )
  const serviceUrl = await makeServiceRole(url, 'test')
  await grantService(url, serviceUrl)
  t.same(await excessOf(serviceUrl), [])
  t.same(await migrate(serviceUrl), [], 'once')
  const after = await openDatabase({ url: serviceUrl, masterKey })
  t.teardown(() => after.close())
  t.same(after.installedAt, installedAt, 'the installation is as old as before')
  t.match(await after.bookSettlements([call]), { booked: { length: 0 } }, 'a call from before stays booked')
  await after.bookSettlements([settlement(accountId, { key_id: keyId })])
  t.match(await after.verifyWallets(), { ok: true })
})

t.test('any other state is refused and stays as it is', async (t) => {
  for (const count of [1, 17]) {
    const { url, sql } = await formerDatabase(t, count)
    const was = await describe(sql)
    await t.rejects(migrate(url), {
      name: 'Refusal',
      code: 'schema_mismatch',
      message: new RegExp(
        `up to ${FORMER[count - 1]!.name}, and .* 0018_wallet_reservations .* first, then this one`,
      ),
    })
    t.same(await describe(sql), was)
  }
  const { url, sql } = await formerDatabase(t)
  await sql`UPDATE schema_migrations SET checksum = 'edited' WHERE version = 9`
  await t.rejects(migrate(url), { code: 'schema_mismatch', message: /unedited/ })
})

t.test('the former program refuses a database that was carried over', async (t) => {
  const { url } = await formerDatabase(t)
  await migrate(url)
  await t.rejects(migrate(url, FORMER, []), { code: 'schema_mismatch' })
})
