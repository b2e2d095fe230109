import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { run } from '../../../src/cli/program.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import { LOOK_BACK_ROWS, SINCE_ROWS } from '../../../src/postgres/call-log/calls.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { until } from '../../support/eventually.ts'
import { newAccount, openFresh, settlement, startDatabase, type TestDatabase } from '../postgres/support.ts'
import { commandsOn, noEngines } from './support.ts'

const { engines, ...first } = await startDatabase(t)

type Opened = Pick<TestDatabase, 'url' | 'masterKey' | 'database'>

/** The command as it is, but for who starts the database and who stops the command. */
function wiringOf({ url, masterKey, database }: Opened, stopped: AbortSignal): Wiring {
  return {
    ...noEngines,
    withDatabase: (work) => work(database),
    async withServiceDatabase(work) {
      const own = await openDatabase({ url, masterKey, maxConnections: 1 })
      try {
        return await work(own)
      } finally {
        await own.close()
      }
    },
    untilStopped: (work) => work(stopped),
  }
}

/** A tail that runs beside the test, and what it has said so far. */
function startTail(t: Test, opened: Opened, words: string[], more: Partial<Wiring> = {}) {
  const stop = new AbortController()
  const said = { calls: [] as { id: number; request_id: string }[], notices: [] as string[] }
  const wiring = { ...wiringOf(opened, stop.signal), ...more }
  const ended = run(['logs', 'tail', '--json', ...words], wiring, {
    answer: (text) =>
      said.calls.push(
        ...text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
      ),
    error: (text) => void said.notices.push(text.trimEnd()),
    isColoured: false,
  })
  const end = async () => {
    stop.abort()
    return ended
  }
  t.teardown(end)
  return { said, end }
}

const requestIds = (calls: readonly { request_id: string }[]): string[] =>
  calls.map(({ request_id }) => request_id)

t.test('the newest, oldest of them first; filters narrow', async (t) => {
  const { database } = first
  const [mine, theirs] = [await newAccount(database), await newAccount(database)]
  const { key } = await database.keys.create({ accountId: mine, name: 'Laptop' })
  const calls = [
    settlement(mine, { key_id: key.id }),
    settlement(theirs, { status: 'error', error_code: 'upstream_error', error_message: 'Too busy.' }),
    settlement(mine, { model: 'sonata-small', status: 'rejected' }),
    settlement(mine, { key_id: key.id, model: 'sonata-small', status: 'interrupted' }),
  ]
  await database.bookings.book(calls)
  const { text, refused } = commandsOn(wiringOf(first, AbortSignal.abort()))
  const tail = async (...words: string[]): Promise<number[]> => {
    const lines = (await text('logs', 'tail', '--no-follow', '--json', ...words)).split('\n').slice(0, -1)
    // By their place in the order of booking.
    return lines.map((line) => 1 + calls.findIndex((call) => call.request_id === JSON.parse(line).request_id))
  }
  t.same(await tail(), [1, 2, 3, 4])
  t.same(await tail('-n', '2'), [3, 4])
  t.same(await tail('--lines', '0'), [])
  t.same(await tail('--account', mine), [1, 3, 4])
  t.same(await tail('--account', mine, '-n', '1'), [4])
  t.same(await tail('--key', key.id), [1, 4])
  t.same(await tail('--model', 'sonata-small,nothing'), [3, 4])
  t.same(await tail('--status', 'error,rejected'), [2, 3])
  t.same(await tail('--status', 'interrupted', '--account', theirs), [])
  const lines = (await text('logs', 'tail', '--no-follow')).split('\n')
  t.equal(lines.length, 5)
  t.match(lines[1], /^2025-10-09 08:53:21\.250 {2}error .*upstream_error: Too busy\. {2}req_/)
  t.match(lines[0], key.prefix)
  t.match(await refused('logs', 'tail', '--account', 'acc_x'), 'There is no account acc_x')
  t.match(await refused('logs', 'tail', '--key', 'key_x'), 'There is no key key_x')
})

t.test('a filter that finds little looks back only so far, and says so', async (t) => {
  const { database, sql, ...opened } = await openFresh(t, engines)
  const [rare, usual] = [await newAccount(database), await newAccount(database)]
  await database.bookings.book([settlement(rare)])
  await database.bookings.book([settlement(usual)])
  await sql`
    INSERT INTO usage_rows
    SELECT (u).* FROM (
      SELECT jsonb_populate_record(NULL::usage_rows, to_jsonb(usage_rows) ||
        jsonb_build_object('id', next_usage_row_id(), 'request_id', 'req_' || at)) AS u
      FROM usage_rows, generate_series(1, ${LOOK_BACK_ROWS}) AS at WHERE account_id = ${usual}
    ) AS copies`
  const { said } = startTail(t, { database, ...opened }, ['--no-follow', '--account', rare, '-n', '1'])
  await until('it says so', () => said.notices.length > 0)
  t.match(said, { calls: { length: 0 }, notices: [/Of the last 100000 calls 0 match/] })
  const all = startTail(t, { database, ...opened }, ['--no-follow', '-n', '1'])
  await until('the newest', () => all.said.calls.length > 0)
  t.same(all.said.notices, [])
})

t.test('writers side by side, transactions that stay open: each call once, in order of ids', async (t) => {
  const opened = await openFresh(t, engines)
  const { database, sql, openAnother } = opened
  const accountId = await newAccount(database)
  const before = [settlement(accountId), settlement(accountId)]
  await database.bookings.book(before)
  const { said, end } = startTail(t, opened, ['-n', '1'])
  await until('the newest is there', () => said.calls.length === 1)

  const writers = await Promise.all([openAnother(), openAnother(), openAnother()])
  const booked = await Promise.all(writers.map((writer, seed) => bookBatches(writer, accountId, seed)))
  // A writer that has its ids and takes its time to commit: the others wait for it.
  const slow = sql.begin(async (transaction) => {
    await transaction`SELECT pg_advisory_xact_lock(7811001)`
    await transaction`SELECT nextval(pg_get_serial_sequence('usage_rows', 'id')) FROM generate_series(1, 5)`
    await until('the writer behind waits for the lock', async () => {
      const [row] = await transaction<[{ waiting: boolean }]>`
          SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) AS waiting`
      return row.waiting
    })
  })
  const [behind] = await Promise.all([bookBatches(writers[0]!, accountId, 9), slow])
  const all = 1 + [...booked, behind].flat().length
  await until('all are there', () => said.calls.length >= all)
  // What comes last has all before it: one that is shown twice would be among them.
  const last = settlement(accountId)
  await database.bookings.book([last])
  await until('the last is there', () => said.calls.at(-1)?.request_id === last.request_id)
  t.equal(await end(), 0)
  const rows = await sql<{ request_id: string }[]>`SELECT request_id FROM usage_rows ORDER BY id OFFSET 1`
  t.same(requestIds(said.calls), requestIds(rows))
  t.same(said.notices, [])
})

async function bookBatches(writer: Database, accountId: string, seed: number): Promise<Settlement[]> {
  const booked: Settlement[] = []
  for (let batch = 0; batch < 12; batch++) {
    const calls = Array.from({ length: 1 + ((batch * 7 + seed * 5) % 40) }, () => settlement(accountId))
    await writer.bookings.book(calls)
    // A second delivery burns ids.
    await writer.bookings.book(calls.slice(0, 3))
    booked.push(...calls)
    await sleep(batch % 3)
  }
  return booked
}

t.test('a filtered tail goes on past what it does not show', async (t) => {
  const opened = await openFresh(t, engines)
  const { database } = opened
  const [mine, theirs] = [await newAccount(database), await newAccount(database)]
  const { said } = startTail(t, opened, ['--account', mine, '--status', 'error'])
  for (let batch = 0; batch * 1000 <= SINCE_ROWS; batch++)
    await database.bookings.book(Array.from({ length: 1000 }, () => settlement(theirs, { cost: '0' })))
  const wanted = settlement(mine, { status: 'error' })
  await database.bookings.book([settlement(mine), settlement(theirs, { status: 'error' }), wanted])
  await until('it comes', () => said.calls.length > 0)
  t.same(requestIds(said.calls), [wanted.request_id])
})

t.test('without a service it waits for one', async (t) => {
  const opened = await openFresh(t, engines)
  const accountId = await newAccount(opened.database)
  let isThere = false
  const { withServiceDatabase } = wiringOf(opened, AbortSignal.abort())
  const { said } = startTail(t, opened, [], {
    withServiceDatabase: async (work) => (isThere ? withServiceDatabase(work) : null),
  })
  await until('it says so', () => said.notices.length > 0)
  isThere = true
  const call = settlement(accountId)
  await opened.database.bookings.book([call])
  await until('the call is there', () => said.calls.length > 0)
  t.same(said.notices, ['No service runs here: waiting for one.', 'The database answers again.'])
  t.same(requestIds(said.calls), [call.request_id])
})
