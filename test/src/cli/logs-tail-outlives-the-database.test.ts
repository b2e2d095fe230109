/** `tollgate logs tail` as a process of its own, while its connections to PostgreSQL are lost in every way. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { until } from '../../support/eventually.ts'
import { relayTo } from '../postgres/relay.ts'
import { newAccount, settlement, startDatabase } from '../postgres/support.ts'
import { ENTRY } from './support.ts'

/** With which a statement begins: to come behind the greeting and the password. */
const PARSE_MESSAGE = 'P'.charCodeAt(0)

/** A way to PostgreSQL that can be cut. */
async function openWay(t: Test, databaseUrl: string) {
  const sockets = new Set<Socket>()
  let connections = 0
  let cutsLeft = 0
  const url = await relayTo(t, databaseUrl, (client, server) => {
    connections += 1
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      if (cutsLeft > 0 && bytes[0] === PARSE_MESSAGE) {
        cutsLeft -= 1
        client.resetAndDestroy()
      } else server.write(bytes)
    })
    server.on('data', (bytes) => client.write(bytes))
  })
  return {
    url,
    connections: () => connections,
    cutsLeft: () => cutsLeft,
    /** All connections are lost now, and so many of the next at their first statement. */
    cut(next: number) {
      cutsLeft = next
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}

t.test('a tail goes on where it was, says what happened, and ends clean', async (t) => {
  const { engines, database, masterKey, url } = await startDatabase(t)
  const way = await openWay(t, url)
  const accountId = await newAccount(database)
  const booked: string[] = []
  const book = async () => {
    const call = settlement(accountId)
    await database.bookings.book([call])
    booked.push(call.request_id)
  }

  await book()
  const tail = spawn(process.execPath, [ENTRY, 'logs', 'tail', '--json'], {
    env: {
      PATH: process.env.PATH ?? '',
      TOLLGATE_DATA_DIR: engines.dataDir,
      DATABASE_URL: way.url,
      TOLLGATE_MASTER_KEY: masterKey.toString('hex'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => tail.kill('SIGKILL'))
  let [answers, notices] = ['', '']
  tail.stdout.on('data', (text) => {
    answers += text
  })
  tail.stderr.on('data', (text) => {
    notices += text
  })
  const seen = () => answers.split('\n').slice(0, -1)
  const untilSeen = () =>
    until(`${booked.length} calls; stderr: ${notices}`, () => seen().length === booked.length)
  const timesBack = () => notices.split('The database answers again.').length - 1
  // Of one loss each reason is logged.
  const timesAway = () => notices.split('trying again').length - 1
  await untilSeen()

  way.cut(1)
  await until('a new connection is lost', () => way.cutsLeft() === 0)
  await book()
  await untilSeen()
  t.ok(way.connections() > 2, 'it reconnected')
  t.ok(timesBack() > 0, 'and says so')

  const [away, before] = [timesAway(), timesBack()]
  await engines.stopEngine('postgres')
  await until('it says so', () => timesAway() > away)
  await engines.startEngine('postgres')
  await book()
  await untilSeen()
  await until('it says so', () => timesBack() > before)

  const ended = once(tail, 'exit')
  tail.kill('SIGINT')
  t.same(await ended, [0, null], 'Ctrl-C ends it')
  t.same(
    seen().map((line) => JSON.parse(line).request_id),
    booked,
    'each call once',
  )
  t.notMatch(notices, /\n {4}at /, 'no stack')
  for (const line of notices.trimEnd().split('\n'))
    t.match(line, /^The database (answers again\.|does not answer, trying again: .)/)
})
