/** Of several hosts in a URL a pool uses the one that takes writes, and follows when that is another one. */
import { once } from 'node:events'
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { connect, dropConnections } from '../../../../src/postgres/connection.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { isTransient } from '../../../../src/postgres/errors.ts'
import { migrate } from '../../../../src/postgres/migrate.ts'
import { losesCommits } from '../../../../src/postgres/servers/replication.ts'
import { eventually, until } from '../../../support/eventually.ts'
import { type ServerName, startPostgresPair } from '../../../support/standby.ts'

const pair = await startPostgresPair(t)
const open = (query = '') => {
  const sql = connect(`${pair.bothUrl}${query}`, { max: 2, name: 'test' })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}
const sql = open()
const whereIs = async (on = sql) => {
  const [row] = await on<[{ name: string }]>`SELECT current_setting('cluster_name') AS name`
  return row.name
}
/** Errors until then must be such that another try may cure. */
const isOn = (name: string, on = sql) =>
  eventually(`${name} is used`, () =>
    whereIs(on).then(
      (found) => (found === name ? true : undefined),
      (error) => {
        t.ok(isTransient(error), error.message)
        return undefined
      },
    ),
  )

t.test('the primary is used, whatever its place in the list, or the standby where asked for', async (t) => {
  t.equal(await whereIs(), 'one')
  t.notOk(await losesCommits(pair.bothUrl), 'commits wait for the standby')
  const [first, second] = pair.bothUrl.split('@')[1]!.split('/')[0]!.split(',')
  const reversed = connect(pair.bothUrl.replace(`${first},${second}`, `${second},${first}`), {
    max: 1,
    name: 'test',
  })
  t.equal(await whereIs(reversed), 'one')
  await reversed.end()
  t.equal(await whereIs(open('?target_session_attrs=read-write')), 'one')
  t.equal(await whereIs(open('?target_session_attrs=standby')), 'two')
  t.equal(await whereIs(open('?target_session_attrs=prefer-standby')), 'two')
  const alone = connect(`${pair.url('two')}?target_session_attrs=read-write`, { max: 1, name: 'test' })
  await t.rejects(whereIs(alone), /No server is read-write: 127\.0\.0\.1:\d+ is a standby/)
  await alone.end({ timeout: 1 })
})

t.test('a server that was made read-only is left, and used again when it takes writes', async (t) => {
  await whereIs()
  await pair.run('one', async (one) => {
    await one`ALTER SYSTEM SET default_transaction_read_only = on`
    await one`SELECT pg_reload_conf()`
  })
  const refused = await eventually('no server takes writes', () =>
    sql`SELECT 1`.then(
      () => undefined,
      (error: Error) => (/No server is read-write/.test(error.message) ? error : undefined),
    ),
  )
  t.ok(isTransient(refused))
  t.match(refused.message, /is a primary whose transactions are read-only; .* is a standby/)
  await pair.run('one', async (one) => {
    await one`SET default_transaction_read_only = off`
    await one`ALTER SYSTEM RESET default_transaction_read_only`
    await one`SELECT pg_reload_conf()`
  })
  await isOn('one')
})

t.test('connections that are dropped are opened again', async (t) => {
  const asleep = sql`SELECT pg_sleep(60)`.then(
    () => null,
    (error) => error,
  )
  const backends = () =>
    pair.run(
      'one',
      (one) =>
        one`SELECT FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid != pg_backend_pid()`,
    )
  await until('it sleeps', async () => (await backends()).length === 1)
  dropConnections(sql)
  t.ok(isTransient(await asleep))
  t.equal(await whereIs(), 'one')
  // Each connection: none is of no use.
  for (let i = 0; i < 4; i++) t.same(await Promise.all([whereIs(), whereIs()]), ['one', 'one'])
})

t.test('a connection that leads to a standby is dropped at the first write', async (t) => {
  let server: ServerName = 'one'
  const ways = new Set<Socket>()
  const relay = createServer((client) => {
    const way = connectTo(Number(new URL(pair.url(server)).port), '127.0.0.1')
    for (const [from, to] of [
      [client, way],
      [way, client],
    ] as const) {
      ways.add(from)
      from.on('error', () => {}).on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(pair.url('one'))
  url.port = String((relay.address() as AddressInfo).port)
  await migrate(url.href)
  const database = await openDatabase({ url: url.href, masterKey: Buffer.alloc(32, 7), maxConnections: 1 })
  t.teardown(async () => {
    await database.close()
    relay.close()
  })
  const act = () => database.accounts.create({ name: 'any', kind: 'personal', credit: 0n })
  await act()
  // As a name or a proxy does that is behind.
  server = 'two'
  for (const way of ways) way.destroy()
  await eventually('it leads to the standby', () =>
    act().then(
      () => undefined,
      (error) => (error.code === '25006' ? true : undefined),
    ),
  )
  server = 'one'
  await eventually('it leads to the primary again', () =>
    act().then(
      () => true,
      () => undefined,
    ),
  )
})

t.test('the standby takes over from a primary that answers nothing', async (t) => {
  const notified: string[] = []
  let subscriptions = 0
  await sql.listen(
    'test',
    (payload) => notified.push(payload),
    () => subscriptions++,
  )
  pair.servers.one.pause()
  const cut = sql`SELECT 1`.then(
    () => null,
    (error) => error,
  )
  await pair.promote('two')
  t.ok(isTransient(await cut), 'a statement under way fails as one to try again')
  await isOn('two')
  await until('the subscription is made again', () => subscriptions > 1)
  await sql.notify('test', 'hello')
  await until('it is notified', () => notified.includes('hello'))
})

t.test('a former primary that comes back as one is not used: its timeline is earlier', async (t) => {
  pair.servers.one.resume()
  const [former] = await pair.run('one', (one) => one`SELECT pg_is_in_recovery() AS recovering`)
  t.notOk(former!.recovering)
  for (let i = 0; i < 5; i++) {
    dropConnections(sql)
    await isOn('two')
  }
})
