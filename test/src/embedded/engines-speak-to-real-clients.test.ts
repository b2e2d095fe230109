import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@clickhouse/client'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import postgres from 'postgres'
import t from 'tap'
import { startEmbedded } from '../../../src/embedded/start.ts'
import { freshDatabase, startEngines, testDataDir } from '../../support/engines.ts'

t.test('every engine answers the client the service uses', async (t) => {
  const engines = await startEngines(t, { withCallLog: false })

  await t.test('PostgreSQL: a ledger row, trigram search, an order that hangs on no locale', async (t) => {
    const sql = postgres(engines.databaseUrl, { max: 1, onnotice: () => {} })
    t.teardown(() => sql.end())
    await sql`CREATE EXTENSION pg_trgm`
    await sql`CREATE TABLE entries (id bigint PRIMARY KEY, credits numeric(38, 8), note text)`
    await sql`INSERT INTO entries VALUES (1, 404.4, 'élan'), (2, -0.00000001, 'Zebra'), (3, 0, 'apple')`
    t.strictSame(
      [...(await sql`SELECT credits::text FROM entries WHERE id = 1`)],
      [{ credits: '404.40000000' }],
    )
    t.strictSame([...(await sql`SELECT similarity('sonata', 'sonatas') > 0.5 AS near`)], [{ near: true }])
    const notes = await sql`SELECT note, upper(note) AS up FROM entries ORDER BY note`
    t.strictSame(
      notes.map((row) => row.note),
      ['Zebra', 'apple', 'élan'],
    )
    t.equal(notes[2]?.up, 'ÉLAN')
  })

  await t.test('PostgreSQL: a database of its own for each test', async (t) => {
    const url = await freshDatabase(engines.databaseUrl)
    t.not(url, engines.databaseUrl)
    const sql = postgres(url, { max: 1 })
    t.teardown(() => sql.end())
    t.strictSame([...(await sql`SELECT to_regclass('entries') AS found`)], [{ found: null }])
  })

  await t.test('NATS: a stream, a message stored once, a consumer', async (t) => {
    const { hostname, port, username, password } = new URL(engines.natsUrl)
    const connection = await connect({ servers: `${hostname}:${port}`, user: username, pass: password })
    t.teardown(() => connection.close())
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: 'SETTLEMENTS', subjects: ['settlements.>'] })
    await manager.consumers.add('SETTLEMENTS', { durable_name: 'settler', ack_policy: AckPolicy.Explicit })
    const stream = jetstream(connection)
    const first = await stream.publish('settlements.a', 'one', { msgID: 'batch-1' })
    const again = await stream.publish('settlements.a', 'one', { msgID: 'batch-1' })
    t.strictSame([first.duplicate, again.duplicate], [false, true])
    const consumer = await stream.consumers.get('SETTLEMENTS', 'settler')
    const message = await consumer.next({ expires: 5_000 })
    t.equal(message?.string(), 'one')
    t.ok(await message?.ackAck())
  })

  await t.test('NATS: nobody without the password', async (t) => {
    const { hostname, port } = new URL(engines.natsUrl)
    await t.rejects(connect({ servers: `${hostname}:${port}`, reconnect: false }), /Authorization/i)
  })

  await t.test('PostgreSQL: nobody without the password', async (t) => {
    const url = new URL(engines.databaseUrl)
    url.password = 'guessed'
    const sql = postgres(url.href, { max: 1 })
    t.teardown(() => sql.end())
    await t.rejects(sql`SELECT 1`, { code: '28P01' })
  })

  await t.test('ClickHouse: a table, rows, a summary of them', async (t) => {
    const client = createClient({ url: engines.clickhouseUrl })
    t.teardown(() => client.close())
    t.strictSame(await client.ping(), { success: true })
    await client.command({
      query: 'CREATE TABLE calls (id UInt64, cost Decimal(38, 8)) ENGINE = MergeTree ORDER BY id',
    })
    const values = Array.from({ length: 1000 }, (_, id) => ({ id, cost: '0.00000001' }))
    await client.insert({ table: 'calls', values, format: 'JSONEachRow' })
    const query = 'SELECT count() AS calls, toString(sum(cost)) AS cost, currentDatabase() AS base FROM calls'
    const rows = await (await client.query({ query, format: 'JSONEachRow' })).json()
    t.strictSame(rows, [{ calls: 1000, cost: '0.00001', base: 'tollgate' }])
  })

  await t.test('the simulated provider answers', async (t) => {
    t.equal((await fetch(engines.simulatorUrl)).status < 600, true)
  })

  t.test('what holds a password is for its owner alone', async (t) => {
    for (const name of [
      'passwords.json',
      'engines/postgres.json',
      'nats/nats-server.conf',
      'postgres/pg_hba.conf',
    ]) {
      t.equal(statSync(join(engines.dataDir, name)).mode & 0o777, 0o600, name)
    }
    t.equal(statSync(join(engines.dataDir, 'postgres')).mode & 0o777, 0o700)
    t.equal(statSync(engines.dataDir).mode & 0o777, 0o700)
  })
})

t.test('PostgreSQL has connections for each gateway', async (t) => {
  const gateways = 16
  const dataDir = await testDataDir(t)
  const engines = await startEmbedded({ dataDir, engines: ['postgres'], gateways })
  t.teardown(() => engines.stop())
  const sql = postgres(engines.urls.databaseUrl!, { max: 10 * gateways })
  t.teardown(() => sql.end())
  const answers = Array.from({ length: 10 * gateways }, () => sql`SELECT pg_sleep(1)`)
  await t.resolves(Promise.all(answers))
})
