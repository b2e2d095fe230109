/** Several servers of PostgreSQL: which one is written to and read from. */

import { once } from 'node:events'
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { connect, dropConnections, losesCommits } from '../../../src/postgres/connection.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { isTransient } from '../../../src/postgres/errors.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { parseServerUrl, printServers, TARGETS } from '../../../src/postgres/servers/address.ts'
import { chooseServer, type ServerState } from '../../../src/postgres/servers/finder.ts'
import { eventually, until } from '../../support/eventually.ts'
import { type ServerName, startPostgresPair } from '../../support/standby.ts'

t.test('failover is followed', async (t) => {
  // Of several hosts in a URL a pool uses the one that takes writes, and follows when that is another one.
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
})

t.test('lists are read from a standby', async (t) => {
  // Lists and logs come from the standby, and show every act that was answered before; else from the primary.
  const ACTS = 30

  const pair = await startPostgresPair(t, { isSynchronous: false })
  await migrate(pair.url('one'))
  const options = { masterKey: Buffer.alloc(32, 7), name: 'test' }
  const database = await openDatabase({ ...options, url: pair.bothUrl, readUrl: pair.bothUrl })
  t.teardown(() => database.close())
  // Another process, which does the acts.
  const other = await openDatabase({ ...options, url: pair.url('one') })
  t.teardown(() => other.close())

  const { account } = await other.accounts.create({ name: 'reader', kind: 'personal', credit: 0n })
  let amount = 1000n * ONE_CREDIT
  /** Tops up, and returns whether the list of the next moment shows it. */
  const showsAct = async (
    writing: Pick<typeof other, 'wallets'> = other,
    reading: Pick<typeof other, 'wallets'> = database,
  ) => {
    amount += 1n
    await writing.wallets.topUp(account.id, amount)
    const [entry] = await reading.wallets.readLedger(account.id, { before: null, limit: 1 })
    return entry?.amount === amount
  }
  const countReads = (name: 'one' | 'two') =>
    pair.run(name, async (sql) => {
      const [row] = await sql<[{ reads: number }]>`
      SELECT sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::integer AS reads FROM pg_stat_user_tables
      WHERE starts_with(relname, 'audit_entries')`
      return row.reads
    })
  const isReadFrom = (name: 'one' | 'two') =>
    eventually(`the list comes from ${name}`, async () => {
      const before = await countReads(name)
      await database.auditRecord.list({ limit: 1 })
      // Counters are reported a second later at most.
      for (let i = 0; i < 15; i++) {
        if ((await countReads(name)) > before) return true
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      return undefined
    })

  t.test('commits do not wait for this standby, which an operator is warned of', async (t) => {
    t.ok(await losesCommits(pair.bothUrl))
    t.notOk(await losesCommits(pair.url('one')), 'of one host nothing is known')
  })

  t.test('the standby has them', async (t) => {
    t.ok(await isReadFrom('two'))
  })

  t.test('a list right after an act of another process shows it', async (t) => {
    for (let i = 0; i < ACTS; i++) t.ok(await showsAct())
  })

  t.test('of a standby that is behind the primary takes its place, until it has caught up', async (t) => {
    await pair.run('two', (sql) => sql`SELECT pg_wal_replay_pause()`)
    for (let i = 0; i < 3; i++) t.ok(await showsAct())
    t.ok(await isReadFrom('one'))
    await pair.run('two', (sql) => sql`SELECT pg_wal_replay_resume()`)
    t.ok(await isReadFrom('two'))
  })

  t.test('within a transaction lists are those of the transaction', async (t) => {
    const found = await database.transactAs('test', (inside) => showsAct(inside, inside))
    t.ok(found)
  })

  t.test('a refusal of a list is passed on', async (t) => {
    await t.rejects(
      database.wallets.readLedger(account.id, { before: null, limit: -1 }),
      /LIMIT must not be negative/,
    )
  })

  t.test('of a standby that is away the primary takes its place', async (t) => {
    await pair.servers.two.kill()
    for (let i = 0; i < 3; i++) t.ok(await showsAct())
  })
})

t.test('urls name servers', async (t) => {
  // What a URL of PostgreSQL says of servers, and which of them is used.
  const read = (url: string) => parseServerUrl(url, 'read-write')

  t.test('hosts, ports and the kind of server', async (t) => {
    t.match(read('postgres://u:p@h/db'), {
      url: 'postgres://u:p@h/db',
      addresses: [{ host: 'h', port: 5432 }],
      target: null,
      tls: null,
    })
    t.match(read('postgresql://u:p%40@h1:5433,h2,[::1]:7/db?sslmode=require&target_session_attrs=any'), {
      url: 'postgresql://u:p%40@h1:5433/db?sslmode=require',
      addresses: [
        { host: 'h1', port: 5433 },
        { host: 'h2', port: 5432 },
        { host: '::1', port: 7 },
      ],
      target: 'any',
    })
    t.equal(read('postgres://h1,h2/db').target, 'read-write')
    t.equal(parseServerUrl('postgres://h1,h2/db', 'standby').target, 'standby')
    t.match(read('postgres://u@%2Frun%2Fpostgresql/db').addresses, [{ host: '/run/postgresql' }])
    t.equal(printServers('postgres://u:p@h1:1,h2:2/db?x=y'), 'h1:1,h2:2/db')
    t.throws(() => read('postgres://u:p@h1:x/db'), /"h1:x" is no server/)
    t.throws(() => read('postgres://h/db?target_session_attrs=slave'), /must be one of any, read-write/)
  })

  const [one, two, three] = [1, 2, 3].map((port) => ({ host: 'h', port }))
  const primary = (timeline = '00000001'): ServerState => ({
    isRecovering: false,
    isReadOnly: false,
    timeline,
  })
  const standby: ServerState = { isRecovering: true, isReadOnly: true, timeline: null }
  const fenced: ServerState = { isRecovering: false, isReadOnly: true, timeline: '00000001' }

  t.test('each kind of server', async (t) => {
    const all = [
      { address: one!, state: fenced },
      { address: two!, state: standby },
      { address: three!, state: primary() },
    ]
    const chosen = Object.fromEntries(TARGETS.map((target) => [target, chooseServer(all, target, null)]))
    t.same(chosen, {
      any: one,
      'read-write': three,
      'read-only': one,
      primary: one,
      standby: two,
      'prefer-standby': two,
    })
    const [, , only] = all
    t.equal(chooseServer([only!], 'standby', null), null)
    t.equal(chooseServer([only!], 'prefer-standby', null), three)
    t.equal(chooseServer([{ address: one!, state: null }], 'any', one!), null)
  })

  t.test('the one in use stays, but for a primary of a later timeline', async (t) => {
    const both = (first: ServerState, second: ServerState) => [
      { address: one!, state: first },
      { address: two!, state: second },
    ]
    t.equal(chooseServer(both(primary(), primary()), 'read-write', two!), two)
    t.equal(chooseServer(both(primary('00000001'), primary('00000002')), 'read-write', one!), two)
    t.equal(chooseServer(both(primary('0000000A'), primary('00000009')), 'read-write', null), one)
    t.equal(chooseServer(both(standby, standby), 'standby', two!), two)
  })
})
