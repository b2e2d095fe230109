/** Engines: the server of NATS is found, all speak to real clients, and come back when they crash. */
import { chmodSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import postgres from 'postgres'
import t from 'tap'
import type { EngineName } from '../../../src/embedded/engine.ts'
import { findNatsServer } from '../../../src/embedded/nats/binary.ts'
import { startEmbedded } from '../../../src/embedded/start.ts'
import {
  freshDatabase,
  startEngines,
  type Teardown,
  type TestEngines,
  testDataDir,
} from '../../support/engines.ts'

t.test('nats server is found', async (t) => {
  const { PATH } = process.env

  function program(path: string, script: string): void {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
  }

  const says = (version: string) => `echo "nats-server: v${version}"`

  /** A machine of our making: a folder that is the first on its PATH, and one to keep a fetched server in. */
  async function machine(t: Teardown): Promise<{ bin: string; kept: string; keptServer: string }> {
    const dir = await testDataDir(t)
    const bin = join(dir, 'bin')
    mkdirSync(bin)
    process.env.PATH = `${bin}:${PATH}`
    t.teardown(() => {
      process.env.PATH = PATH
    })
    const kept = join(dir, 'kept here')
    return { bin, kept, keptServer: join(kept, 'usr', 'sbin', 'nats-server') }
  }

  t.test(
    'the server on the PATH is taken from 2.9 on, and its version says whether it can sync',
    async (t) => {
      const { bin, kept } = await machine(t)
      const path = join(bin, 'nats-server')
      for (const [version, hasSyncInterval] of [
        ['2.9.0', false],
        ['2.10.1', true],
        ['3.0.0', true],
      ] as const) {
        program(path, says(version))
        t.strictSame(await findNatsServer([kept]), { path, hasSyncInterval })
      }
    },
  )

  t.test('one that is too old or does not run is passed over for the one kept', async (t) => {
    const { bin, kept, keptServer } = await machine(t)
    program(keptServer, says('2.9.10'))
    for (const script of [says('2.8.4'), says('1.9.0'), 'exit 1']) {
      program(join(bin, 'nats-server'), script)
      t.match(await findNatsServer([kept]), { path: keptServer })
    }
  })

  t.test('what Debian’s tools bring is unpacked and kept, and nothing else is left', async (t) => {
    const { bin, kept, keptServer } = await machine(t)
    program(join(bin, 'nats-server'), says('2.8.4'))
    program(join(bin, 'apt-get'), 'case "$*" in *download*) touch nats-server_2.9.10_amd64.deb;; esac')
    const unpack = `mkdir -p "$3/usr/sbin" && printf '#!/bin/sh\\n${says('2.9.10')}\\n' > "$3/usr/sbin/nats-server"`
    program(join(bin, 'dpkg-deb'), `${unpack} && chmod 755 "$3/usr/sbin/nats-server"`)
    t.strictSame(await findNatsServer([kept]), { path: keptServer, hasSyncInterval: false })
    program(join(bin, 'apt-get'), 'exit 1')
    t.match(await findNatsServer([kept]), { path: keptServer }, 'and not fetched again')
    t.ok(existsSync(keptServer))
  })

  t.test('where none can be had, the error says what to do', async (t) => {
    const { bin, kept } = await machine(t)
    program(join(bin, 'nats-server'), says('2.8.4'))
    program(join(bin, 'apt-get'), 'echo "no network" >&2; exit 100')
    await t.rejects(findNatsServer([kept]), /Install nats-server, or set NATS_URL.*no network/s)
    t.notOk(existsSync(kept))
  })
})

t.test('engines speak to real clients', async (t) => {
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
      const query =
        'SELECT count() AS calls, toString(sum(cost)) AS cost, currentDatabase() AS base FROM calls'
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
})

t.test('clickhouse http', async (t) => {
  const log = { level: ClickHouseLogLevel.OFF }

  t.test('the embedded ClickHouse speaks the HTTP interface of a server', async (t) => {
    const { clickhouseUrl } = await startEngines(t, { only: ['clickhouse'] })
    const client = createClient({ log, url: clickhouseUrl })
    t.teardown(() => client.close())
    const { origin, username, password } = new URL(clickhouseUrl)
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`${origin}${path}`, { ...init, headers: { authorization, ...init.headers } })

    async function rows(query: string, parameters: Record<string, unknown> = {}, settings = {}) {
      const given = {
        query,
        query_params: parameters,
        clickhouse_settings: settings,
        format: 'JSONEachRow',
      } as const
      return (await client.query(given)).json()
    }

    await t.test('parameters are values, whatever characters they have', async (t) => {
      const texts = [
        "it's",
        'back\\slash',
        'tab\tand\nnewline',
        '{x:String}',
        '',
        "'; DROP TABLE calls; --",
        'é 🎬',
      ]
      for (const text of texts) {
        t.strictSame(await rows('SELECT {x:String} AS x', { x: text }), [{ x: text }], JSON.stringify(text))
      }
      const query =
        'SELECT {n:Nullable(String)} AS n, {a:Array(String)} AS a, toString({i:UInt64}) AS i, {d:DateTime64(3)} AS d'
      const d = new Date('2026-01-02T03:04:05.678Z')
      t.strictSame(await rows(query, { n: null, a: ["o'", 'b\\'], i: '18446744073709551615', d }), [
        { n: null, a: ["o'", 'b\\'], i: '18446744073709551615', d: '2026-01-02 03:04:05.678' },
      ])
      t.strictSame(await rows('SELECT count() AS c FROM system.{t:Identifier}', { t: 'one' }), [{ c: 1 }])
    })

    await t.test('long parameters come as a form', async (t) => {
      const x = "y'".repeat(50_000)
      const given = {
        query: 'SELECT length({x:String}) AS n',
        query_params: { x },
        use_multipart_params: true,
      }
      const result = await client.query({ ...given, format: 'JSONEachRow' })
      t.strictSame(await result.json(), [{ n: 100_000 }])
    })

    await t.test('parameters and settings of one statement are not those of another', async (t) => {
      const numbers = Array.from({ length: 24 }, (_, i) => i + 1)
      const answers = await Promise.all(
        numbers.map((i) =>
          rows("SELECT {i:UInt8} AS i, getSetting('max_threads') AS threads", { i }, { max_threads: i }),
        ),
      )
      t.strictSame(
        answers,
        numbers.map((i) => [{ i, threads: i }]),
      )
      for (let round = 0; round < 3; round++) {
        const ofOneKind = await Promise.all(numbers.map((i) => rows('SELECT {i:UInt8} AS i', { i })))
        t.strictSame(
          ofOneKind,
          numbers.map((i) => [{ i }]),
        )
        await t.rejects(rows('SELECT throwIf({i:UInt8} = 7)', { i: 7 }), { code: '395' })
      }
      const reads = `${origin}/?query=${encodeURIComponent("SELECT {i:UInt8}, getSetting('readonly')")}`
      for (const i of [1, 2]) {
        const answer = await fetch(`${reads}&param_i=${i}`, { headers: { authorization } })
        t.equal(await answer.text(), `${i}\t1\n`, 'what only reads takes parameters each time')
      }
      await t.rejects(rows('SELECT {i:UInt8}'), { code: '456', type: 'UNKNOWN_QUERY_PARAMETER' })
    })

    await t.test('rows are inserted from arrays, streams, text and gzip, into named columns', async (t) => {
      await client.command({
        query: 'CREATE TABLE rows (id UInt64, note String) ENGINE = MergeTree ORDER BY id',
      })
      const written = await client.insert({
        table: 'rows',
        columns: ['note', 'id'],
        values: [{ id: 1, note: 'a;b\n' }],
        format: 'JSONEachRow',
      })
      t.match(written.summary, { written_rows: '1' })
      const many = Readable.from(
        (function* () {
          for (let id = 2; id <= 5_000; id++) yield { id, note: `row ${id}` }
        })(),
      )
      await client.insert({ table: 'rows', values: many, format: 'JSONEachRow' })
      const zipped = createClient({ log, url: clickhouseUrl, compression: { request: true, response: true } })
      t.teardown(() => zipped.close())
      await zipped.insert({ table: 'rows', values: [[5_001, 'zip']], format: 'JSONCompactEachRow' })
      const body = new Uint8Array(gzipSync('5002\tby hand\n'))
      const headers = { 'content-encoding': 'gzip' }
      const inserted = await ask('/tollgate?query=INSERT+INTO+rows+FORMAT+TSV', {
        method: 'POST',
        body,
        headers,
      })
      t.equal(inserted.status, 200)
      await client.command({ query: "INSERT INTO rows VALUES (5003, 'inline')" })
      const binary = Buffer.concat([
        Buffer.from(new BigUint64Array([5_004n]).buffer),
        Buffer.from('\x02\xff\xfe', 'latin1'),
      ])
      const inBinary = await ask('/tollgate?query=INSERT+INTO+rows+FORMAT+RowBinary', {
        method: 'POST',
        body: binary,
      })
      t.equal(inBinary.status, 200, 'a binary format')
      const sums = 'SELECT count() AS n, sum(id) AS s, any(note) FILTER (WHERE id = 1) AS note FROM rows'
      t.strictSame(await rows(sums), [{ n: 5004, s: (5004 * 5005) / 2, note: 'a;b\n' }])
      const all = await (await zipped.query({ query: 'SELECT note FROM rows', format: 'JSONEachRow' })).json()
      t.equal(all.length, 5004, 'and a long answer comes back compressed')
    })

    await t.test('an insert without rows, and one with a row that is broken', async (t) => {
      await client.insert({ table: 'rows', values: [], format: 'JSONEachRow' })
      const broken = Readable.from([{ id: 6000, note: 'x' }, { id: 'not a number' }])
      const inserting = client.insert({ table: 'rows', values: broken, format: 'JSONEachRow' })
      await t.rejects(inserting, { code: '27', type: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED' })
      t.strictSame(
        await rows('SELECT count() AS n FROM rows WHERE id = 6000'),
        [{ n: 0 }],
        'none of it is kept',
      )
    })

    await t.test('a second delivery of a block under the same token changes nothing', async (t) => {
      const query =
        'CREATE TABLE once (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100'
      await client.command({ query })
      for (const id of [1, 1, 2]) {
        const clickhouse_settings = { insert_deduplication_token: `batch-${id}` }
        await client.insert({ table: 'once', values: [{ id }], format: 'JSONEachRow', clickhouse_settings })
      }
      t.strictSame(await rows('SELECT arraySort(groupArray(id)) AS ids FROM once'), [{ ids: [1, 2] }])
    })

    await t.test('errors have ClickHouse’s code, name and status', async (t) => {
      await t.rejects(rows('SELEC 1'), { code: '62', type: 'SYNTAX_ERROR' })
      await t.rejects(rows('SELECT * FROM nowhere'), { code: '60', type: 'UNKNOWN_TABLE' })
      await t.rejects(rows('SELECT 1', {}, { no_such_setting: '1' }), {
        code: '115',
        type: 'UNKNOWN_SETTING',
      })
      const lost = createClient({ log, url: clickhouseUrl.replace(/tollgate$/, 'nowhere') })
      t.teardown(() => lost.close())
      await t.rejects(lost.query({ query: 'SELECT 1' }), { code: '81', type: 'UNKNOWN_DATABASE' })
      const answer = await ask('/?query=SELECT+*+FROM+nowhere', { method: 'POST' })
      t.equal(answer.status, 404)
      t.equal(answer.headers.get('x-clickhouse-exception-code'), '60')
      t.match(await answer.text(), /^Code: 60\. DB::Exception: .*\(UNKNOWN_TABLE\)\n$/)
    })

    await t.test('a result without bound is refused, not held in memory', async (t) => {
      const query = 'SELECT repeat(toString(number), 1000) AS x FROM numbers(1000000)'
      await t.rejects(rows(query), { code: '396', type: 'TOO_MANY_ROWS_OR_BYTES' })
    })

    await t.test('only who knows the password asks, and GET only reads', async (t) => {
      const stranger = createClient({ log, url: origin, username, password: 'guessed' })
      t.teardown(() => stranger.close())
      await t.rejects(stranger.query({ query: 'SELECT 1' }), { code: '516', type: 'AUTHENTICATION_FAILED' })
      const named = await fetch(`${origin}/?query=SELECT+1&user=${username}&password=${password}`)
      t.equal(await named.text(), '1\n')
      t.equal(await (await fetch(`${origin}/ping`)).text(), 'Ok.\n')
      const dropped = await ask('/tollgate?query=DROP+TABLE+rows')
      t.equal(dropped.headers.get('x-clickhouse-exception-code'), '164')
      const read = await ask('/tollgate?query=SELECT+{x:String}+FORMAT+JSONCompactEachRow&param_x=read')
      t.equal(await read.text(), '["read"]\n')
    })
  })
})

t.test('crashed engine returns', async (t) => {
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
    const health = (name: EngineName) => engines.readHealth()[name]
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
    t.equal(engines.readHealth().simulator?.state, 'restarting')
    await engines.stopEngine('nats')
    t.match(engines.readHealth().nats, { state: 'stopped', pid: null }, 'it is stopped all the same')
    renameSync(`${folder}.away`, folder)
    await until(() => engines.readHealth().simulator?.state === 'ready')
    t.ok((await fetch(engines.simulatorUrl)).status < 600)
    await engines.startEngine('nats')
    t.equal(engines.readHealth().nats?.state, 'ready')
  })
})
