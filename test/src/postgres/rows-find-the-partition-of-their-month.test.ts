/** Partitions are made ahead of time; a row of a month that has none is booked all the same, once. */
import t from 'tap'
import { connect } from '../../../src/postgres/connection.ts'
import { makePartitions } from '../../../src/postgres/partitions/make.ts'
import { newAccount, settlement, startDatabase } from './support.ts'

const { database, openAnother, sql, serviceUrl } = await startDatabase(t)
const service = connect(serviceUrl, { max: 1, name: 'test of the role' })
t.teardown(() => service.end({ timeout: 1 }))
const MONTHS_AHEAD = 3

const monthsFrom = (later: number): number => {
  const now = new Date()
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later, 15)
}
const partitionOf = async (requestId: string): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    SELECT tableoid::regclass::text AS name FROM usage_rows WHERE request_id = ${requestId}`
  return rows.map(({ name }) => name)
}
const nameOf = (epochMs: number): string =>
  `usage_rows_${new Date(epochMs).toISOString().slice(0, 7).replace('-', '_')}`

t.test('this month and the next three have partitions', async (t) => {
  const account = await newAccount(database)
  for (let later = 0; later <= MONTHS_AHEAD; later++) {
    const call = settlement(account, { submitted_at: monthsFrom(later) })
    await database.bookings.book([call])
    t.same(await partitionOf(call.request_id), [nameOf(monthsFrom(later))])
  }
  t.same(await makePartitions(sql), [], 'none is missing')
})

t.test('a row of a month without a partition is booked, and moves to it later', async (t) => {
  const account = await newAccount(database)
  const at = monthsFrom(MONTHS_AHEAD + 2)
  const call = settlement(account, { submitted_at: at })
  t.same((await database.bookings.book([call])).booked, [call.request_id])
  t.same(await partitionOf(call.request_id), ['usage_rows_default'])
  const made: string[] = []
  const makers = [sql, service].map(async (on) => {
    for (;;) {
      const [row] = await on<
        [{ name: string | null }]
      >`SELECT make_next_partition(${MONTHS_AHEAD + 2}) AS name`.catch((error: { code?: string }) => {
        if (error.code === '55P03') return [{ name: '' }] as const
        throw error
      })
      if (row.name === null) return
      if (row.name !== '') made.push(row.name)
    }
  })
  await Promise.all(makers)
  t.equal(new Set(made).size, made.length, 'two makers make each once')
  t.equal(made.length, 8, 'two months of four tables')
  t.same(await partitionOf(call.request_id), [nameOf(at)])
  t.same((await database.bookings.book([call])).booked, [], 'it stays booked once')
  t.match(await database.audits.verifyWallets(), { ok: true })
})

t.test('the service reads and writes partitions through their table alone', async (t) => {
  const DENIED = { code: '42501' }
  const partition = nameOf(Date.now())
  await t.rejects(service`INSERT INTO ${service(partition)} SELECT * FROM ${service(partition)}`, DENIED)
  await t.rejects(service`DELETE FROM ${service(partition)}`, DENIED)
  await t.rejects(sql`DELETE FROM ${sql(partition)}`, /only ever added/, 'nor does the owner by mistake')
})

t.test('bookers of many processes book a call of any month once', async (t) => {
  const account = await newAccount(database)
  const calls = [-30, 0, MONTHS_AHEAD, 40].map((later) =>
    settlement(account, { submitted_at: monthsFrom(later) }),
  )
  const others = await Promise.all([openAnother(), openAnother()])
  const bookings = await Promise.all([database, ...others].map((booker) => booker.bookings.book(calls)))
  t.same(bookings.flatMap(({ booked }) => booked).sort(), calls.map(({ request_id }) => request_id).sort())
})
