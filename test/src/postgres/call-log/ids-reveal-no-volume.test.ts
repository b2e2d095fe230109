/** Customers see the ids of their calls: nobody may read from them how many calls others make. */
import t from 'tap'
import { startEngines } from '../../../support/engines.ts'
import { newAccount, openFresh, settlement } from '../support.ts'

const MIN_STEP = 1n
const MAX_ID = 2n ** 53n

t.test('ids follow the clock, rise in the order of booking, and keep no count', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const { database, sql } = await openFresh(t, engines)
  const [mine, theirs] = [await newAccount(database), await newAccount(database)]
  const micros = async () =>
    (
      await sql<[{ at: bigint }]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at`
    )[0].at
  const before = await micros()
  const booked: string[] = []
  for (let batch = 0; batch < 5; batch++) {
    const calls = Array.from({ length: 40 }, (_, at) => settlement(at % 4 === 0 ? mine : theirs))
    await database.bookings.book(calls)
    booked.push(...calls.map(({ request_id }) => request_id))
  }
  const after = await micros()
  const rows = await sql<
    { id: bigint; request_id: string }[]
  >`SELECT id, request_id FROM usage_rows ORDER BY id`
  t.same(
    rows.map(({ request_id }) => request_id),
    booked,
    'in the order of booking',
  )
  t.ok(rows[0]!.id >= before && rows[0]!.id < MAX_ID)
  // Ahead of the clock by the random steps of one batch at most.
  t.ok(rows.at(-1)!.id <= after + 40n * 64n)
  const steps = rows.slice(1).map(({ id }, at) => id - rows[at]!.id)
  t.ok(steps.every((step) => step >= MIN_STEP))
  t.ok(new Set(steps).size > 10, 'not one after the other')
})

t.test('an id that is ahead of the clock is followed by a higher one', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const { database, sql } = await openFresh(t, engines)
  const account = await newAccount(database)
  const ahead = MAX_ID / 2n
  await sql`SELECT setval('usage_row_ids', ${ahead})`
  await database.bookings.book([settlement(account), settlement(account)])
  const rows = await sql<{ id: bigint }[]>`SELECT id FROM usage_rows ORDER BY id`
  t.ok(rows[0]!.id > ahead && rows[1]!.id > rows[0]!.id)
})
