import t, { type Test } from 'tap'
import { COPIED_COLUMNS } from '../../../../schemas/call-log/columns.ts'
import { MAX_RANGE_ROWS } from '../../../../schemas/call-log/usage-row.ts'
import type { CopyRange } from '../../../../src/postgres/call-log/copy.ts'
import type { Database } from '../../../../src/postgres/database.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { eventually } from '../../../support/eventually.ts'
import { usageText } from '../../../support/usage-text.ts'
import { relayTo } from '../relay.ts'
import { newAccount, openFresh, settlement, startDatabase } from '../support.ts'

const HOUR_MS = 3_600_000
const { engines, ...first } = await startDatabase(t)

const linesOf = (text: Buffer): string[] => text.toString().split('\n').sort()

const requestIdsOf = (text: Buffer): (string | undefined)[] =>
  text
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t')[COPIED_COLUMNS.indexOf('request_id')])

/** The server notices the end of another session a moment later. */
const claimSoon = (database: Database): Promise<CopyRange> =>
  eventually('the range can be claimed', async () => (await database.callCopy.claimRange()) ?? undefined)

t.test('what was claimed and not finished comes again as it was', async (t) => {
  const { database } = first
  t.equal(await database.callCopy.claimRange(), null, 'nothing is booked')
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'Laptop' })
  const calls = Array.from({ length: 5 }, () => settlement(accountId, { key_id: key.id }))
  await database.bookings.book(calls)
  const range = await database.callCopy.claimRange()
  await database.bookings.book([settlement(accountId)])
  t.same(await database.callCopy.claimRange(), range, 'whatever was booked since')

  t.ok(Math.abs(Date.now() - range!.oldestBookedAt!) < HOUR_MS)

  const named = { key_name: 'Laptop', key_prefix: key.prefix }
  const ids = await first.sql<{ id: bigint }[]>`SELECT id FROM usage_rows ORDER BY id`
  const rows = calls.map((call, index) => ({ ...call, ...named, id: ids[index]!.id }))
  t.same(linesOf(await database.callCopy.readRows(range!)), linesOf(usageText(rows)))

  await database.callCopy.finishRange(range!)
  const next = await database.callCopy.claimRange()
  t.equal(next?.from, range!.to + 1n)
  t.equal(requestIdsOf(await database.callCopy.readRows(next!)).length, 1)
  await database.callCopy.finishRange(range!)
  t.same(await database.callCopy.claimRange(), next, 'finishing twice changes nothing')
  await database.callCopy.finishRange(next!)
  t.equal(await database.callCopy.claimRange(), null)
})

t.test('many rows are copied in several ranges, none left out', async (t) => {
  const { database } = await openFresh(t, engines)
  const accountId = await newAccount(database)
  const booked: string[] = []
  for (let batch = 0; batch <= MAX_RANGE_ROWS / 1000; batch++) {
    const calls = Array.from({ length: 1000 }, () => settlement(accountId, { cost: '1' }))
    booked.push(...calls.map(({ request_id }) => request_id))
    // A second delivery burns ids: ranges have gaps.
    await database.bookings.book(calls)
    await database.bookings.book(calls.slice(0, 10))
  }
  const copied: (string | undefined)[] = []
  let ranges = 0
  for (;;) {
    const range = await database.callCopy.claimRange()
    if (range === null) break
    ranges++
    copied.push(...requestIdsOf(await database.callCopy.readRows(range)))
    await database.callCopy.finishRange(range)
  }
  t.ok(ranges > 1)
  t.equal(copied.sort().join(), booked.sort().join())
})

t.test('of several processes one copies; when it is gone another does, from the same range on', async (t) => {
  const { database, openAnother } = await openFresh(t, engines)
  await database.bookings.book([settlement(await newAccount(database))])
  const other = await openAnother()
  const range = await other.callCopy.claimRange()
  t.ok(range)
  t.equal(await database.callCopy.claimRange(), null)
  await other.close()
  t.same(await claimSoon(database), range)
})

t.test('an instant that the log cannot hold is printed as the nearest that it can', async (t) => {
  const { database } = await openFresh(t, engines)
  const accountId = await newAccount(database)
  const call = settlement(accountId, { submitted_at: -1, created_at: Number.MAX_SAFE_INTEGER })
  await database.bookings.book([call])
  const text = (await database.callCopy.readRows({ from: 1n, to: 2n ** 53n })).toString()
  t.match(text, /^2299-01-01 00:00:00\t\d+\t1970-01-01 00:00:00\t/)
})

/** PostgreSQL behind a relay that cuts the first connection that was sent so many bytes, once. */
function cutOnce(t: Test, url: string, bytes: number): Promise<string> {
  let isCut = false
  return relayTo(t, url, (client, server) => {
    client.pipe(server)
    let sent = 0
    server.on('data', (data) => {
      sent += data.length
      if (sent < bytes || isCut) client.write(data)
      else {
        isCut = true
        client.destroy()
      }
    })
  })
}

t.test('a session that is lost in the middle of the rows fails, and the rows come again whole', async (t) => {
  const { database, url, masterKey } = await openFresh(t, engines)
  const accountId = await newAccount(database)
  const error_message = 'x'.repeat(1_000)
  const calls = Array.from({ length: 1_000 }, () => settlement(accountId, { error_message }))
  await database.bookings.book(calls)
  const relayed = await openDatabase({ url: await cutOnce(t, url, 500_000), masterKey })
  t.teardown(() => relayed.close())
  const range = await relayed.callCopy.claimRange()
  await t.rejects(relayed.callCopy.readRows(range!))
  t.same(await claimSoon(relayed), range)
  t.same(
    requestIdsOf(await relayed.callCopy.readRows(range!)).sort(),
    calls.map(({ request_id }) => request_id).sort(),
  )
})
