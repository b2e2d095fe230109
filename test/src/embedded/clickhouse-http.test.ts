import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import t from 'tap'
import { startEngines } from '../../support/engines.ts'

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
    const given = { query: 'SELECT length({x:String}) AS n', query_params: { x }, use_multipart_params: true }
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
    await t.rejects(rows('SELECT 1', {}, { no_such_setting: '1' }), { code: '115', type: 'UNKNOWN_SETTING' })
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
