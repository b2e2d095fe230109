/** A database of before partitions gets them while calls are booked: every row stays, none is booked twice. */

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Settlement } from '../../../../schemas/call-log/columns.ts'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import { bookBatch } from '../../../../src/postgres/billing/booking.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { migrate, readFunctions, readMigrations, type SchemaFile } from '../../../../src/postgres/migrate.ts'
import { connectTo } from '../../../support/connections.ts'
import { freshDatabase, startEngines } from '../../../support/engines.ts'
import { newAccount, settlement } from '../support.ts'

const { databaseUrl } = await startEngines(t, { only: ['postgres'] })
const BEFORE = 22
const TABLES = ['usage_rows', 'ledger_entries', 'audit_entries', 'tasks']

/** Replaces a part of the text, which must be there. */
function replaced({ name, text, checksum }: SchemaFile, from: string, to: string): SchemaFile {
  if (!text.includes(from)) throw new Error(`${name} has no ${from}`)
  return { name, text: text.replace(from, to), checksum: `before-${checksum}` }
}

/** The functions as they were before there were partitions, where that makes a difference. */
const FUNCTIONS_BEFORE = readFunctions()
  .filter(({ name }) => name !== 'partitions')
  .map((file) => {
    if (file.name === 'billing')
      return replaced(
        file,
        'FROM partitions WHERE',
        `FROM (VALUES ('', now(), '')) AS p(table_name, ends_at, state) WHERE`,
      )
    return file
  })

t.test('bookings go on during the migration, and nothing is lost or doubled', async (t) => {
  const url = await freshDatabase(databaseUrl)
  const migrations = readMigrations()
  await migrate(url, migrations.slice(0, BEFORE), FUNCTIONS_BEFORE)
  const masterKey = generateMasterKey()
  const database = await openDatabase({ url, masterKey })
  t.teardown(() => database.close())
  const sql = connectTo(t, url, 2)
  const accountId = await newAccount(database)
  const calls: Settlement[] = []
  const book = async () => {
    const call = settlement(accountId, { submitted_at: Date.now(), cost: '100' })
    calls.push(call)
    const { booked } = await bookBatch(sql, [call])
    if (booked.length !== 1) throw new Error('a new call is not booked')
  }
  for (let i = 0; i < 20; i++) await book()
  await database.wallets.topUp(accountId, 500n * ONE_CREDIT, { reference: 'invoice 1' })
  const [last] = await sql<[{ ledger: bigint; audit: bigint }]>`
    SELECT (SELECT max(id) FROM ledger_entries) AS ledger, (SELECT max(id) FROM audit_entries) AS audit`

  let isMigrated = false
  const migrating = migrate(url).finally(() => {
    isMigrated = true
  })
  while (!isMigrated) {
    await book()
    await sleep(5)
  }
  t.same(
    (await migrating).slice(0, 3),
    migrations.slice(BEFORE, BEFORE + 3).map(({ name }) => name),
  )
  for (let i = 0; i < 5; i++) await book()
  t.ok(calls.length > 26, `${calls.length - 25} calls were booked during the migration`)

  const again = await database.bookings.book(calls.slice(0, 1000))
  t.same(again, { wallets: [], booked: [], refused: [] }, 'calls of before and after stay booked once')
  const repeated = await database.wallets.topUp(accountId, 500n * ONE_CREDIT, { reference: 'invoice 1' })
  t.ok(repeated.isRepeated, 'a reference of before counts once')
  await database.wallets.topUp(accountId, 500n * ONE_CREDIT, { reference: 'invoice 2' })
  const [rows] = await sql<[{ calls: bigint; charges: bigint; ledger: bigint; audit: bigint }]>`
    SELECT (SELECT count(*) FROM usage_rows) AS calls,
      (SELECT count(*) FROM ledger_entries WHERE kind = 'charge') AS charges,
      (SELECT max(id) FROM ledger_entries) AS ledger, (SELECT max(id) FROM audit_entries) AS audit`
  t.equal(rows.calls, BigInt(calls.length))
  t.equal(rows.charges, BigInt(calls.length))
  t.ok(rows.ledger > last.ledger && rows.audit > last.audit, 'ids go on where they were')
  t.match(await database.audits.verifyWallets(), { ok: true })
})

t.test('the tables of before are the partition of the past, with the months that follow', async (t) => {
  const url = await freshDatabase(databaseUrl)
  await migrate(url, readMigrations().slice(0, BEFORE), FUNCTIONS_BEFORE)
  const sql = connectTo(t, url)
  await sql`INSERT INTO accounts (id, name, kind) VALUES ('acc_1', 'Test', 'personal')`
  await migrate(url)
  const parts = await sql<{ name: string; bound: string }[]>`
    SELECT c.oid::regclass::text AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
    FROM pg_class AS c WHERE relispartition AND relkind = 'r' ORDER BY 1`
  for (const table of TABLES) {
    const names = parts.filter(({ name }) => name.startsWith(table))
    t.match(names.find(({ name }) => name === `${table}_past`)?.bound, /FROM \(MINVALUE\) TO/)
    t.equal(names.find(({ name }) => name === `${table}_default`)?.bound, 'DEFAULT')
    t.equal(names.length, 4, 'the past holds this month and the next, and two more follow')
  }
  t.same(await migrate(url), [])
})
