import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { hold, settle } from '../tasks/support.ts'

const { database, sql, openAnother } = await startDatabase(t)

t.test('bookers and holds on wallets in opposite orders: nothing waits for ever, totals exact', async (t) => {
  const accounts = await Promise.all(Array.from({ length: 8 }, () => newAccount(database)))
  const bookers = [database, await openAnother(), await openAnother()]
  const BATCHES = 12
  const booked: string[] = []
  const work = bookers.map(async (booker, index) => {
    for (let batch = 0; batch < BATCHES; batch++) {
      const order = index % 2 === 0 ? accounts : accounts.toReversed()
      const calls = order.flatMap((account) => [
        settlement(account, { cost: '3' }),
        settlement(account, { cost: '4' }),
      ])
      booked.push(...(await booker.bookings.book(calls)).booked)
    }
  })
  const holding = accounts.map(async (accountId, index) => {
    for (let round = 0; round < BATCHES; round++) {
      const ref = `vid_${index}_${round}`
      const task = await hold(database, accountId, 1000n, ref)
      if (round % 2 === 0) await settle(database, task, 100n)
    }
  })
  await Promise.all([...work, ...holding])
  t.equal(new Set(booked).size, bookers.length * BATCHES * accounts.length * 2)
  const spent = BigInt(bookers.length * BATCHES * 7 + (BATCHES / 2) * 100)
  for (const wallet of await database.wallets.read(accounts))
    t.match(wallet, { used: spent, held: BigInt(BATCHES / 2) * 1000n }, 'every charge, once')
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})

t.test('the same batch given to three bookers at once is booked once', async (t) => {
  const account = await newAccount(database)
  const bookers = [database, await openAnother(), await openAnother()]
  const batch = Array.from({ length: 50 }, () => settlement(account, { cost: '2' }))
  const bookings = await Promise.all(bookers.map((booker) => booker.bookings.book(batch)))
  t.equal(bookings.flatMap((booking) => booking.booked).length, batch.length)
  t.equal((await database.wallets.read([account]))[0]?.used, 100n)
})

t.test('ids of booked calls rise in the order of commit', async (t) => {
  const account = await newAccount(database)
  const bookers = [database, await openAnother(), await openAnother()]
  const visible = async () => {
    const rows = await sql<{ id: bigint }[]>`
      SELECT id FROM usage_rows WHERE account_id = ${account} ORDER BY id`
    return rows.map((row) => row.id)
  }
  const seen: bigint[][] = []
  let running = true
  const watcher = (async () => {
    while (running) seen.push(await visible())
  })()
  await Promise.all(
    bookers.map(async (booker) => {
      for (let round = 0; round < 10; round++) {
        await booker.bookings.book(Array.from({ length: 10 }, () => settlement(account)))
        // The second look from here began after this booking: on a busy machine the watcher may not have come to one.
        for (const looks = seen.length; round === 0 && seen.length < looks + 2; ) await nextTurn()
      }
    }),
  )
  running = false
  await watcher
  const last = await visible()
  t.equal(last.length, 300)
  t.ok(
    seen.some((ids) => ids.length > 0 && ids.length < last.length),
    'it was watched while it grew',
  )
  const misses = seen.filter((ids) => ids.some((id, index) => id !== last[index]))
  t.same(misses, [], 'no row ever appears below one that was visible before')
})
