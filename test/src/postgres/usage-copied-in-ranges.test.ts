import t from 'tap'
import { newAccount, openFresh, settlement, startDatabase } from './support.ts'

const { engines, ...first } = await startDatabase(t)

t.test('what was claimed and not finished comes again as it was', async (t) => {
  const { database } = first
  t.equal(await database.claimCopyRange(), null, 'nothing is booked')
  const accountId = await newAccount(database)
  const { key } = await database.createKey({ accountId, name: 'Laptop' })
  const calls = Array.from({ length: 5 }, () => settlement(accountId, { key_id: key.id }))
  await database.bookSettlements(calls)
  const range = await database.claimCopyRange()
  await database.bookSettlements([settlement(accountId)])
  t.same(await database.claimCopyRange(), range, 'whatever was booked since')

  const rows = await database.readUsageRows(range!)
  t.same(
    rows.map(({ request_id }) => request_id),
    calls.map(({ request_id }) => request_id),
  )
  const { id, booked_at, ...row } = rows[0]!
  t.same(row, { ...calls[0], key_name: 'Laptop', key_prefix: key.prefix })
  t.ok(id >= range!.from && id <= range!.to && booked_at > 0)

  await database.finishCopyRange(range!)
  const next = await database.claimCopyRange()
  t.equal(next?.from, range!.to + 1n)
  t.equal((await database.readUsageRows(next!)).length, 1)
  await database.finishCopyRange(range!)
  t.same(await database.claimCopyRange(), next, 'finishing twice changes nothing')
  await database.finishCopyRange(next!)
  t.equal(await database.claimCopyRange(), null)
})

t.test('many rows are copied in several ranges, none left out', async (t) => {
  const { database } = await openFresh(t, engines)
  const accountId = await newAccount(database)
  const booked: string[] = []
  for (let batch = 0; batch < 11; batch++) {
    const calls = Array.from({ length: 1000 }, () => settlement(accountId, { cost: '1' }))
    booked.push(...calls.map(({ request_id }) => request_id))
    // A second delivery burns ids: ranges have gaps.
    await database.bookSettlements(calls)
    await database.bookSettlements(calls.slice(0, 10))
  }
  const copied: string[] = []
  let ranges = 0
  for (;;) {
    const range = await database.claimCopyRange()
    if (range === null) break
    ranges++
    copied.push(...(await database.readUsageRows(range)).map(({ request_id }) => request_id))
    await database.finishCopyRange(range)
  }
  t.ok(ranges > 1)
  t.equal(copied.join(), booked.join())
})

t.test('of several processes one copies; when it is gone another does, from the same range on', async (t) => {
  const { database, openAnother } = await openFresh(t, engines)
  await database.bookSettlements([settlement(await newAccount(database))])
  const other = await openAnother()
  const range = await other.claimCopyRange()
  t.ok(range)
  t.equal(await database.claimCopyRange(), null)
  await other.close()
  // The server notices the end of a session a moment later.
  let taken = await database.claimCopyRange()
  for (let tries = 0; taken === null && tries < 200; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    taken = await database.claimCopyRange()
  }
  t.same(taken, range)
})
