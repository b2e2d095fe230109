/** The role of the service: it can do its work (all tests beside this one use it), and nothing beyond. */
import t from 'tap'
import { connect } from '../../../src/postgres/connection.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { excessOf, grantService, makeServiceRole, migrateAsOwner } from '../../../src/postgres/roles.ts'
import { freshDatabase } from '../../support/engines.ts'
import { readText } from '../../support/source-files.ts'
import { newAccount, settlement, startDatabase } from './support.ts'

const { engines, database, url, serviceUrl } = await startDatabase(t)
const service = connect(serviceUrl, { max: 1, name: 'test of the role' })
t.teardown(() => service.end({ timeout: 1 }))

/** SQLSTATE insufficient_privilege: before any trigger has a say. */
const DENIED = { code: '42501' }

t.test('booked rows and the audit record can be added to and read, not changed', async (t) => {
  const accountId = await newAccount(database)
  await database.bookings.book([settlement(accountId)])
  for (const table of ['ledger_entries', 'usage_rows', 'audit_entries']) {
    const [{ count }] = await service<[{ count: bigint }]>`SELECT count(*) FROM ${service(table)}`
    t.ok(count > 0n, table)
    await t.rejects(service`UPDATE ${service(table)} SET account_id = account_id`, DENIED)
    await t.rejects(service`DELETE FROM ${service(table)}`, DENIED)
    await t.rejects(service`TRUNCATE ${service(table)}`, DENIED)
  }
  for (const table of ['schema_migrations', 'schema_functions'])
    await t.rejects(service`DELETE FROM ${service(table)}`, DENIED)
})

t.test('no DDL', async (t) => {
  for (const statement of [
    'CREATE TABLE more (x int)',
    'ALTER TABLE wallets DISABLE TRIGGER ALL',
    'DROP TRIGGER ledger_entries_stay ON ledger_entries',
    'DROP TABLE audit_entries',
    'CREATE FUNCTION more() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    'CREATE ROLE more SUPERUSER',
    'GRANT UPDATE ON ledger_entries TO tollgate_service',
    `SET session_replication_role = 'replica'`,
  ]) {
    if (statement.startsWith('GRANT')) {
      // Without a grant option nothing is granted, with a warning or an error.
      await service.unsafe(statement).catch(() => undefined)
      await t.rejects(service`UPDATE ledger_entries SET amount = 0`, DENIED, statement)
    } else await t.rejects(service.unsafe(statement), DENIED, statement)
  }
})

t.test('what a role may do beyond is named, and taken from it by the owner', async (t) => {
  t.same(await excessOf(serviceUrl), [])
  t.same(await excessOf(url), ['is a superuser'])
  const owner = connect(url, { max: 1, name: 'test owner' })
  t.teardown(() => owner.end({ timeout: 1 }))
  await owner`GRANT UPDATE ON ledger_entries TO tollgate_service`
  await owner`GRANT CREATE ON SCHEMA public TO tollgate_service`
  t.same(await excessOf(serviceUrl), ['may create tables', 'may UPDATE ledger_entries'])
  await migrateAsOwner(serviceUrl, url)
  t.same(await excessOf(serviceUrl), [])
  t.same(await migrate(serviceUrl), [], 'without the owner it sees that nothing is missing')
})

t.test('one role for both does, and says what it may beyond', async (t) => {
  const admin = await freshDatabase(engines.databaseUrl)
  const sql = connect(admin, { max: 1, name: 'test admin' })
  t.teardown(() => sql.end({ timeout: 1 }))
  const plain = await makeServiceRole(admin, 'test')
  await sql`ALTER SCHEMA public OWNER TO tollgate_service`
  await migrateAsOwner(plain, null)
  const excess = await excessOf(plain)
  t.match(excess, ['may create tables', 'owns tables'])
  await grantService(plain, plain)
  t.same(await excessOf(plain), excess, 'it keeps what it has')
})

t.test('the roles of the compose file: one migrates, the other has no more than it needs', async (t) => {
  const made = /<<'SQL'\n(.+?)\n\s*SQL\n/s.exec(readText('docker-compose.yml'))![1]!
  const admin = connect(url, { max: 1, name: 'test admin' })
  t.teardown(async () => {
    await admin`DROP DATABASE tollgate_of_compose WITH (FORCE)`
    await admin`DROP ROLE tollgate_owner, tollgate_of_compose`
    await admin.end({ timeout: 1 })
  })
  // The embedded cluster has a role and a database of the plain name.
  const statements = made
    .replaceAll(/:'(owner|service)'/g, `'secret'`)
    .replaceAll(/\btollgate\b/g, 'tollgate_of_compose')
  for (const statement of statements.trim().split('\n')) await admin.unsafe(statement)
  // The embedded server lets no other role log in: the administrator takes the role on.
  const as = (role: string): string => {
    const address = new URL(url)
    Object.assign(address, { pathname: '/tollgate_of_compose', search: `?role=${role}` })
    return address.href
  }
  await migrateAsOwner(as('tollgate_of_compose'), as('tollgate_owner'))
  t.same(await excessOf(as('tollgate_of_compose')), [])
  t.match(await excessOf(as('tollgate_owner')), ['may create tables', 'owns tables'])
})
