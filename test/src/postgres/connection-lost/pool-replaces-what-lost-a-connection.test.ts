/** A pool that lost a connection answers the next statement, whatever waited when the connection closed. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTo, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { connect, dropConnections } from '../../../../src/postgres/connection.ts'
import { isTransient } from '../../../../src/postgres/errors.ts'
import { openPool, type Sql } from '../../../../src/postgres/pool.ts'
import { relayTo } from '../relay.ts'
import { startDatabase } from '../support.ts'

const { url } = await startDatabase(t)

/** A pool of one connection whose sockets are at hand, the latest last. */
function open(t: Test): { readonly sql: Sql; readonly sockets: Socket[] } {
  const sockets: Socket[] = []
  const { hostname, port } = new URL(url)
  const socket = async () => {
    sockets.push(connectTo(Number(port), hostname))
    return sockets.at(-1)!
  }
  const { sql } = openPool(
    () => postgres(url, { max: 1, fetch_types: false, socket } as postgres.Options<never>) as unknown as Sql,
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
  const fixture = (name: string) => readFileSync(new URL(`../../../fixtures/tls/${name}`, import.meta.url))
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
