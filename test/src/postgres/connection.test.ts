/** Connections that are lost: before a statement, in a transaction, and with the whole engine. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTo, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { emptyResult } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { connect, dropConnections } from '../../../src/postgres/connection.ts'
import { isAway, isBadData, isTransient } from '../../../src/postgres/errors.ts'
import { LOCKS } from '../../../src/postgres/locks.ts'
import { openPool, type Sql } from '../../../src/postgres/pool.ts'
import { retryOnStaleEnd } from '../../../src/postgres/tasks/stale-end.ts'
import { inTransaction } from '../../../src/postgres/transaction.ts'
import { startEngines } from '../../support/engines.ts'
import { eventually, until } from '../../support/eventually.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { relayTo } from './relay.ts'
import { newAccount, openFresh, settlement } from './support.ts'
import { hold, move, newVideo } from './tasks/support.ts'

const engines = await startEngines(t, { only: ['postgres'] })

t.test('connection lost behind its start', async (t) => {
  // A connection lost at the first answer after its start: the caller gets the error, and there is no other.
  const { url } = await openFresh(t, engines)

  const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05I', 'latin1')
  const ENDS = {
    end: (socket: Socket) => socket.destroy(),
    reset: (socket: Socket) => socket.resetAndDestroy(),
  }

  /** The server's address by way of here, where the first connection is lost in place of that answer. */
  function addressWithCut(t: Test, cut: (socket: Socket) => void): Promise<string> {
    let isToBeCut = true
    return relayTo(t, url, (client, server) => {
      let isStarted = false
      client.pipe(server)
      server.on('data', (bytes) => {
        if (isStarted && isToBeCut) {
          isToBeCut = false
          return cut(client)
        }
        isStarted ||= bytes.includes(READY_FOR_QUERY)
        client.write(bytes)
      })
    })
  }

  // An error that nobody catches fails the test by itself.
  for (const [how, cut] of Object.entries(ENDS))
    t.test(how, async (t) => {
      const sql = connect(await addressWithCut(t, cut), { max: 1, name: 'test' })
      const error: unknown = await sql`SELECT 1`.catch((error: unknown) => error)
      t.ok(isTransient(error), `${error}`)
      t.same([...(await sql`SELECT 2 AS two`)], [{ two: 2 }], 'the pool works again')
      await sql.end()
    })
})

t.test('pool replaces what lost a connection', async (t) => {
  // A pool that lost a connection answers the next statement, whatever waited when the connection closed.
  const { url } = await openFresh(t, engines)

  /** A pool of one connection whose sockets are at hand, the latest last. */
  function open(t: Test): { readonly sql: Sql; readonly sockets: Socket[] } {
    const sockets: Socket[] = []
    const { hostname, port } = new URL(url)
    const socket = async () => {
      sockets.push(connectTo(Number(port), hostname))
      return sockets.at(-1)!
    }
    const { sql } = openPool(
      () =>
        postgres(url, { max: 1, fetch_types: false, socket } as postgres.Options<never>) as unknown as Sql,
    )
    t.teardown(() => sql.end({ timeout: 1 }))
    return { sql, sockets }
  }

  const failureOf = (statement: PromiseLike<unknown>): PromiseLike<Error | null> =>
    statement.then(
      () => null,
      (error: Error) => error,
    )

  t.test('a connection closes before it has sent a statement', async (t) => {
    const { sql, sockets } = open(t)
    await sql`SELECT 1`
    sockets.at(-1)!.destroy()
    await nextTurn()
    t.match(await failureOf(sql`SELECT 1`), { code: 'CONNECTION_CLOSED' })
    t.same([...(await sql`SELECT 2 AS two`)], [{ two: 2 }])
  })

  t.test('a statement comes between the error of a connection and its close', async (t) => {
    const { sql, sockets } = open(t)
    await sql`SELECT 1`
    const asleep = failureOf(sql`SELECT pg_sleep(60)`)
    await nextTurn()
    const socket = sockets.at(-1)!
    const failed = once(socket, 'error').catch((error) => error)
    socket.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    await failed
    t.same([...(await sql`SELECT 2 AS two`)], [{ two: 2 }])
    t.ok(isTransient(await asleep))
  })

  t.test('a transaction loses its connection', async (t) => {
    const { sql, sockets } = open(t)
    const lost = sql.begin(async (transaction) => {
      await transaction`SELECT 1`
      sockets.at(-1)!.destroy()
      await new Promise(() => {})
    })
    t.match(await failureOf(lost), { code: 'CONNECTION_CLOSED' })
    t.same([...(await sql`SELECT 2 AS two`)], [{ two: 2 }])
  })

  t.test('a pool that has ended opens no other', async (t) => {
    const { sql, sockets } = open(t)
    await sql`SELECT 1`
    const asleep = failureOf(sql`SELECT pg_sleep(60)`)
    await nextTurn()
    await sql.end({ timeout: 0 })
    t.ok(await asleep)
    t.match(await failureOf(sql`SELECT 1`), { code: 'CONNECTION_ENDED' })
    t.equal(sockets.length, 1)
  })

  // An error that nobody catches fails the test by itself.
  t.test('connections by TLS are dropped among statements', async (t) => {
    const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url))
    const credentials = { key: fixture('test-only-localhost.key'), cert: fixture('test-only-localhost.crt') }
    const address = await relayTo(t, url, (client, server) => {
      client.once('data', () => {
        client.write('S')
        const secure = new TLSSocket(client, { isServer: true, ...credentials })
        secure.on('error', () => {})
        secure.pipe(server).pipe(secure)
      })
    })
    const sql = connect(`${address}?sslmode=require`, { max: 2, name: 'test' })
    t.teardown(() => sql.end({ timeout: 1 }))
    const statements = () => Promise.all([1, 2, 3].map((n) => sql`SELECT ${n}::integer`))
    for (let i = 0; i < 20; i++) {
      const early = failureOf(statements())
      if (i % 2 === 0) await early
      dropConnections(sql)
      t.equal(await failureOf(statements()), null)
      const error = await early
      t.ok(error === null || isTransient(error), `${error}`)
    }
  })
})

t.test('engine away is transient', async (t) => {
  const { database, sql } = await openFresh(t, engines)

  const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => t.fail('it must fail'),
      (error: unknown) => error,
    )

  t.test('every call says that another try may do, and does once the engine is back', async (t) => {
    const account = await newAccount(database)
    const batch = [settlement(account, { cost: '7' })]
    const hash = database.keys.lookupHash('any')
    const task = newVideo(account, { hold: 1n })
    await engines.stopEngine('postgres')
    const attempts: Record<string, () => Promise<unknown>> = {
      ping: () => database.ping(),
      findCredential: () => database.keys.findCredential(hash),
      readWallets: () => database.wallets.read([account]),
      bookSettlements: () => database.bookings.book(batch),
      readBooked: () => database.bookings.readBooked([], [account]),
      claimCopyRange: () => database.callCopy.claimRange(),
      createTask: () => database.tasks.create(task),
      reserveWallet: () =>
        database.reservations.reserveWallet({ accountId: account, requestId: 'req_1', amount: 1n }),
    }
    for (const [name, attempt] of Object.entries(attempts)) {
      const error = await failureOf(attempt())
      t.ok(isTransient(error) && isAway(error), name)
    }
    await engines.startEngine('postgres')
    for (const [name, attempt] of Object.entries(attempts)) {
      let failures = 0
      // A connection that broke meanwhile may fail once more; a lasting failure fails here.
      for (; failures < 50; failures++) {
        const error = await attempt().then(
          () => null,
          (reason: unknown) => reason,
        )
        if (error === null) break
        t.ok(isTransient(error), name)
      }
      t.ok(failures < 50, name)
    }
    t.match((await database.wallets.read([account]))[0], { used: 7n, held: 1n })
    t.match(await database.audits.verifyWallets(), { ok: true })
  })

  t.test('a killed engine loses nothing that it answered for', async (t) => {
    const account = await newAccount(database)
    const batches = Array.from({ length: 40 }, () => [
      settlement(account, { cost: '1' }),
      settlement(account, { cost: '2' }),
    ])
    let isKilled = false
    for (const [index, batch] of batches.entries()) {
      if (index === 20) {
        engines.killEngine('postgres')
        isKilled = true
      }
      for (let tries = 0; ; tries++) {
        try {
          await database.bookings.book(batch)
          break
        } catch (error) {
          t.ok(isTransient(error), String(error))
          if (tries === 200) throw error
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
    }
    t.ok(isKilled)
    t.match((await database.wallets.read([account]))[0], { used: 120n })
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })

  t.test('what will fail the same way next time is not transient', async (t) => {
    const bad = await failureOf(sql`SELECT 'x'::text::int`)
    t.same([isTransient(bad), isBadData(bad)], [false, true])
    const wrong = await failureOf(sql`SELECT FROM no_such_table`)
    t.same([isTransient(wrong), isBadData(wrong)], [false, false])
    t.same([isAway(bad), isAway(wrong), isAway(new Error('any'))], [false, false, false])
    t.same([isTransient(new Error('any')), isTransient(null), isBadData(undefined)], [false, false, false])
  })

  t.test('a deadlock and a statement cut short are transient', async (t) => {
    const [one = '', two = ''] = [await newAccount(database), await newAccount(database)]
    const touch = (first: string, second: string, met: () => Promise<void>) =>
      sql.begin(async (transaction) => {
        await transaction`UPDATE wallets SET balance = balance WHERE account_id = ${first}`
        await met()
        await transaction`UPDATE wallets SET balance = balance WHERE account_id = ${second}`
      })
    let waiting: (() => void) | null = null
    const met = () =>
      new Promise<void>((resolve) => {
        if (waiting === null) {
          waiting = resolve
          return
        }
        waiting()
        resolve()
      })
    const outcomes = await Promise.allSettled([touch(one, two, met), touch(two, one, met)])
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    t.match(failed?.reason, { code: '40P01' })
    t.ok(isTransient(failed?.reason))
    t.notOk(isAway(failed?.reason), 'it answers')
    const cut = await failureOf(
      sql.begin(async (transaction) => {
        await transaction`SET LOCAL statement_timeout = 20`
        await transaction`SELECT pg_sleep(5)`
      }),
    )
    t.ok(isTransient(cut))
  })
})

t.test('session lost in a transaction', async (t) => {
  // The client by itself answers these with an uncaught exception and a pool that is of no use any more.
  const { database, sql } = await openFresh(t, engines)

  const uncaught: Error[] = []
  const note = (error: Error) => void uncaught.push(error)
  process.on('uncaughtException', note)
  t.teardown(() => process.off('uncaughtException', note))

  const works = (query: () => Promise<unknown>) =>
    eventually('the pool works again', () =>
      query().then(
        () => true,
        () => undefined,
      ),
    )

  t.test('an error that has nothing to do with the session rolls back and comes through', async (t) => {
    const failing = inTransaction(sql, async (transaction) => {
      await transaction`CREATE TABLE never_made (n integer)`
      throw new Error('ours')
    })
    await t.rejects(failing, { message: 'ours' })
    t.same(await sql`SELECT FROM pg_tables WHERE tablename = 'never_made'`, [])
  })

  t.test('a session that the server ends while one statement follows another', async (t) => {
    for (let round = 0; round < 4; round++) {
      let pid = 0
      const working = inTransaction(sql, async (transaction) => {
        for (;;) {
          const [own] = await transaction<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`
          pid = own.pid
        }
      })
      const ended = working.catch((error: unknown) => error)
      await until('the transaction works', () => pid !== 0)
      await retryOnStaleEnd(sql, () => sql`SELECT pg_terminate_backend(${pid}::int, 5000)`)
      const error = await ended
      t.ok(isTransient(error), `is reported as worth another try: ${error}`)
      await works(() => sql`SELECT 1`)
    }
  })

  t.test('a session that ends itself within a statement', async (t) => {
    for (let round = 0; round < 3; round++) {
      const failing = inTransaction(
        sql,
        (transaction) => transaction`SELECT pg_terminate_backend(pg_backend_pid(), 5000), pg_sleep(1)`,
      )
      await t.rejects(failing)
      t.ok(await retryOnStaleEnd(sql, () => sql`SELECT 1`), 'and the old error is not met again')
    }
  })

  t.test('PostgreSQL is killed while holds wait for the lock of their wallet', async (t) => {
    const accountId = await newAccount(database)
    let isLocked = false
    const locking = inTransaction(sql, async (transaction) => {
      await transaction`SELECT FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
      isLocked = true
      await transaction`SELECT pg_sleep(30)`
    })
    const isWaiting = async () => {
      const [row] = await retryOnStaleEnd(
        sql,
        () => sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
      )
      return row === undefined ? undefined : true
    }
    await until('the wallet is locked', () => isLocked)
    const task = newVideo(accountId, { hold: ONE_CREDIT })
    const place = () => database.tasks.create(task)
    const placing = place()
    const results = Promise.allSettled([locking, placing])
    await eventually('a hold waits', isWaiting)
    engines.killEngine('postgres')
    for (const result of await results) t.equal(result.status, 'rejected')
    await works(place)
    t.equal((await place()).outcome, 'created')
    t.equal((await database.wallets.read([accountId]))[0]?.held, ONE_CREDIT, 'held once')
    t.equal((await database.audits.verifyWallets()).ok, true)
  })

  t.test('PostgreSQL is killed while a task’s end waits for the booking lock: it ended or not', async (t) => {
    const accountId = await newAccount(database)
    const task = await hold(database, accountId, ONE_CREDIT)
    const claimed = (await database.tasks.applyTransition(move(task, 'claimed'))).task
    const storing = (await database.tasks.applyTransition(move(claimed, 'produced'))).task
    let isLocked = false
    const locking = inTransaction(sql, async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
      isLocked = true
      await transaction`SELECT pg_sleep(30)`
    })
    await until('the lock is taken', () => isLocked)
    const end = move(storing, 'stored', {}, 7n)
    const results = Promise.allSettled([locking, database.tasks.applyTransition(end)])
    await eventually('the end waits', async () => {
      const [row] = await retryOnStaleEnd(
        sql,
        () => sql`SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'`,
      )
      return row === undefined ? undefined : true
    })
    engines.killEngine('postgres')
    for (const result of await results) t.equal(result.status, 'rejected')
    await works(() => database.tasks.applyTransition(end))
    t.match((await database.tasks.applyTransition(end)).task, {
      state: 'succeeded',
      version: storing.version + 1,
      cost: 7n,
    })
    t.match((await database.wallets.read([accountId]))[0], { held: 0n, used: 7n })
    t.equal((await database.audits.verifyWallets()).ok, true)
  })

  t.test('a session that the server ends while the files of a task wait to be removed', async (t) => {
    const accountId = await newAccount(database)
    const created = await database.tasks.create(newVideo(accountId, { hold: ONE_CREDIT }))
    if (created.outcome !== 'created') throw new Error(created.outcome)
    const { id } = (await database.tasks.applyTransition(move(created.task, 'cancelled'))).task
    let isLocked = false
    const locking = inTransaction(sql, async (transaction) => {
      await transaction`SELECT FROM tasks WHERE id = ${id} FOR UPDATE`
      isLocked = true
      await transaction`SELECT pg_sleep(30)`
    })
    await eventually('the task is locked', () => isLocked || undefined)
    const results = Promise.allSettled([
      locking,
      database.tasks.removeFiles({ id, result: emptyResult() }, []),
    ])
    await eventually('both are ended', async () => {
      const { count } = await retryOnStaleEnd(
        sql,
        () => sql`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity, (
          SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock') AS waiting
        WHERE wait_event = 'PgSleep' OR wait_event_type = 'Lock'`,
      )
      return count > 1 || undefined
    })
    for (const result of await results) t.equal(result.status, 'rejected')
    await works(() => database.tasks.removeFiles({ id, result: emptyResult() }, []))
  })

  t.test('nothing of it was uncaught', async (t) => t.same(uncaught, []))
})

t.test('statements through a pooler are answered', async (t) => {
  // * Through a pooler in transaction mode every statement is answered, whatever statements share its connection.
  // See docs/cluster.md, "A pooler in transaction mode".
  const CONNECTIONS = 4
  const AT_ONCE = 24
  const STATEMENTS = 60

  const engines = await startEngines(t, { only: ['postgres'] })
  const pooler = await startPgBouncer(t, engines.databaseUrl)
  const sql = connect(pooler.url, { max: CONNECTIONS, name: 'test', isPooled: true })
  t.teardown(() => sql.end({ timeout: 1 }))

  const KINDS = [
    async () => (await sql<{ n: number }[]>`SELECT 1 AS n`)[0]!.n,
    async (at: number) => (await sql<{ n: number }[]>`SELECT ${at}::integer - ${at - 1}::integer AS n`)[0]!.n,
    async () => (await sql.unsafe<{ n: number }[]>('SELECT 1 AS n'))[0]!.n,
    async (at: number) => {
      const ids = Array.from({ length: at % 50 }, (_, n) => `id ${n}`)
      const [row] = await sql<
        { n: number }[]
      >`SELECT count(*)::integer AS n FROM wallets WHERE account_id = ANY (${ids})`
      return row!.n + 1
    },
    (at: number) =>
      inTransaction(sql, async (transaction) => {
        const [[first], [second]] = await Promise.all([
          transaction<{ n: number }[]>`SELECT 1 AS n`,
          transaction<{ n: number }[]>`SELECT ${at}::integer - ${at}::integer AS n`,
        ])
        return first!.n + second!.n
      }),
  ]

  await t.test('statements of every kind, many at once', async (t) => {
    const answers = Array.from({ length: AT_ONCE }, async (_, worker) => {
      let sum = 0
      for (let at = 0; at < STATEMENTS; at++) sum += await KINDS[(worker + at) % KINDS.length]!(at)
      return sum
    })
    const sums = await Promise.all(answers)
    t.same(new Set(sums), new Set([STATEMENTS]))
  })
})
