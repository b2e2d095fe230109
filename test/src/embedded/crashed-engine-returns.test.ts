import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@clickhouse/client'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import postgres from 'postgres'
import t from 'tap'
import type { EngineName } from '../../../src/embedded/engine.ts'
import { startEngines, type TestEngines } from '../../support/engines.ts'

const NAMES = ['postgres', 'nats', 'clickhouse'] as const

const natsOptions = (engines: TestEngines) => {
  const { hostname, port, username, password } = new URL(engines.natsUrl)
  return { servers: `${hostname}:${port}`, user: username, pass: password }
}

async function writeEverywhere(engines: TestEngines): Promise<void> {
  const sql = postgres(engines.databaseUrl, { max: 1 })
  await sql`CREATE TABLE kept (n int)`
  await sql`INSERT INTO kept VALUES (7)`
  await sql.end()
  const connection = await connect(natsOptions(engines))
  await (await jetstreamManager(connection)).streams.add({ name: 'KEPT', subjects: ['kept'] })
  await jetstream(connection).publish('kept', 'seven')
  await connection.close()
  const client = createClient({ url: engines.clickhouseUrl })
  await client.command({ query: 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n' })
  await client.insert({ table: 'kept', values: [{ n: 7 }], format: 'JSONEachRow' })
  await client.close()
}

async function readEverywhere(engines: TestEngines): Promise<unknown[]> {
  const sql = postgres(engines.databaseUrl, { max: 1 })
  const rows = await sql`SELECT n FROM kept`
  await sql.end()
  const connection = await connect(natsOptions(engines))
  const info = await (await jetstreamManager(connection)).streams.info('KEPT')
  await connection.close()
  const client = createClient({ url: engines.clickhouseUrl })
  const answer = await (await client.query({ query: 'SELECT n FROM kept', format: 'JSONEachRow' })).json()
  await client.close()
  return [[...rows], info.state.messages, answer]
}

const KEPT = [[{ n: 7 }], 1, [{ n: 7 }]]

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}

t.test('engines killed with SIGKILL come back at the same address with their data', async (t) => {
  const engines = await startEngines(t, { only: NAMES })
  const health = (name: EngineName) => engines.health()[name]
  await writeEverywhere(engines)
  const before = Object.fromEntries(NAMES.map((name) => [name, health(name)]))
  for (const name of NAMES) engines.killEngine(name)
  await until(() => NAMES.every((name) => health(name)?.crashes === 1 && health(name)?.state === 'ready'))
  t.strictSame(await readEverywhere(engines), KEPT)
  for (const name of NAMES) {
    const told = engines.events.filter((event) => event.engine === name).map((event) => event.event)
    t.strictSame(told.slice(0, 4), ['started', 'ready', 'crashed', 'restarting'], `${name} reported`)
    t.equal(told.at(-1), 'ready')
    t.equal(health(name)?.port, before[name]?.port)
    t.not(health(name)?.pid, before[name]?.pid)
  }

  await t.test('stopped and started again too, and stay stopped in between', async (t) => {
    for (const name of NAMES) await engines.stopEngine(name)
    t.strictSame(
      NAMES.map((name) => health(name)?.state),
      ['stopped', 'stopped', 'stopped'],
    )
    for (const name of NAMES) await engines.startEngine(name)
    t.strictSame(await readEverywhere(engines), KEPT)
  })

  await t.test('a stop while a crashed engine waits for its restart ends the waiting', async (t) => {
    engines.killEngine('nats')
    await until(() => health('nats')?.state === 'restarting')
    await engines.stopEngine('nats')
    t.match(health('nats'), { state: 'stopped', pid: null })
    await engines.startEngine('nats')
    t.equal(health('nats')?.state, 'ready')
  })
})

t.test('PostgreSQL with a transaction open stops in order all the same', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const sql = postgres(engines.databaseUrl, { max: 1 })
  const broken = t.rejects(sql.unsafe('BEGIN; CREATE TABLE unfinished (n int); SELECT pg_sleep(600)'))
  const watch = postgres(engines.databaseUrl, { max: 1 })
  const asleep = () => watch`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
  while ((await asleep()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  await watch.end()
  await engines.stopEngine('postgres')
  await broken
  await sql.end({ timeout: 1 })
  t.match(
    engines.events.find((event) => event.event === 'stopped'),
    { engine: 'postgres', detail: 'exit code 0' },
  )
})

t.test('an engine whose record cannot be written is ended, and started once it can be', async (t) => {
  const engines = await startEngines(t, { only: ['simulator', 'nats'] })
  const folder = join(engines.dataDir, 'engines')
  const failures = () => engines.events.filter(({ event }) => event === 'restart-failed').length
  renameSync(folder, `${folder}.away`)
  engines.killEngine('simulator')
  await until(() => failures() >= 2)
  t.equal(engines.health().simulator?.state, 'restarting')
  await engines.stopEngine('nats')
  t.match(engines.health().nats, { state: 'stopped', pid: null }, 'it is stopped all the same')
  renameSync(`${folder}.away`, folder)
  await until(() => engines.health().simulator?.state === 'ready')
  t.ok((await fetch(engines.simulatorUrl)).status < 600)
  await engines.startEngine('nats')
  t.equal(engines.health().nats?.state, 'ready')
})
