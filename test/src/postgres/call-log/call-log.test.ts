/** The rows of calls in PostgreSQL: their ids, sums, and their copy. */

import t, { type Test } from 'tap'
import { COPIED_COLUMNS } from '../../../../schemas/call-log/columns.ts'
import { MAX_RANGE_ROWS } from '../../../../schemas/call-log/usage-row.ts'
import { withSharedIds } from '../../../../src/core/call-log/shared-ids.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import type { CopyRange } from '../../../../src/postgres/call-log/copy.ts'
import { type Database, openDatabase } from '../../../../src/postgres/database.ts'
import { eventually } from '../../../support/eventually.ts'
import { usageText } from '../../../support/usage-text.ts'
import { relayTo } from '../relay.ts'
import { newAccount, openFresh, settlement, sharePostgres } from '../support.ts'

const engines = await sharePostgres()

t.test('ids reveal no volume', async (t) => {
  // Customers see the ids of their calls: nobody may read from them how many calls others make.
  const MIN_STEP = 1n
  const MAX_ID = 2n ** 53n

  t.test('ids follow the clock, rise in the order of booking, and keep no count', async (t) => {
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
    const { database, sql } = await openFresh(t, engines)
    const account = await newAccount(database)
    const ahead = MAX_ID / 2n
    await sql`SELECT setval('usage_row_ids', ${ahead})`
    await database.bookings.book([settlement(account), settlement(account)])
    const rows = await sql<{ id: bigint }[]>`SELECT id FROM usage_rows ORDER BY id`
    t.ok(rows[0]!.id > ahead && rows[1]!.id > rows[0]!.id)
  })
})

t.test('metering is summed', async (t) => {
  // How the calls of a window were metered, by account, model and channel, and whose balance is negative.
  const NOW = Date.now()

  t.test('only groups with something to tell, and negative balances, are named', async (t) => {
    const { database } = await openFresh(t, engines)
    const [one, other] = [await newAccount(database), await newAccount(database)]
    const call = {
      submitted_at: NOW,
      created_at: NOW,
      channel_id: 'primary',
      usage_source: 'upstream',
      detail: '{"prompt_bytes":7}',
    } as const
    await database.bookings.book([
      settlement(one, call),
      settlement(one, { ...call, usage_source: 'estimate' }),
      settlement(one, {
        ...call,
        detail: '{"prompt_bytes":7,"usage_suspect":"output 9 > 8","answered_by_other_model":1}',
      }),
      // Text of the client's own is no mark.
      settlement(one, {
        ...call,
        detail: JSON.stringify({ prompt_bytes: 7, tools: ',"usage_suspect":"x,"answered_by_other_model":1' }),
      }),
      settlement(one, { ...call, usage_source: 'estimate', created_at: NOW - 5_000 }),
      settlement(one, { ...call, usage_source: 'none', cost: '0' }),
      settlement(other, call),
    ])
    t.same(await database.audits.reportMetering(NOW - 1_000), {
      groups: [
        {
          account_id: one,
          model: settlement(one).model,
          channel_id: 'primary',
          calls: 4,
          estimated: 1,
          suspect: 1,
          otherModel: 1,
        },
      ],
      negative: [],
    })
    t.equal(await database.audits.countNegativeBalances(), 0)
    await database.wallets.adjust(other, -2_000_00000000n, { reason: 'a test' })
    const { negative } = await database.audits.reportMetering(NOW + 1)
    t.match(negative, [{ account_id: other }])
    t.ok(negative[0]!.balance < 0n)
    t.equal(await database.audits.countNegativeBalances(), 1)
  })
})

t.test('shared rows are found by each id', async (t) => {
  // Operators find a refused call by its request id, also where it shares a row with others.
  t.test('each of the calls of a shared row is found', async (t) => {
    const { database } = await openFresh(t, engines)
    const account = await newAccount(database)
    const ids = Array.from({ length: 3 }, () => newId('req'))
    const shared = settlement(account)
    const other = settlement(account)
    await database.bookings.book([
      {
        ...shared,
        request_id: ids[0]!,
        status: 'rejected',
        cost: '0',
        call_count: ids.length,
        detail: withSharedIds(null, ids),
      },
      other,
    ])
    for (const id of ids) {
      const { call } = await database.calls.find(id)
      t.match(call, { request_id: ids[0], call_count: 3, account_id: shared.account_id }, id)
    }
    t.match((await database.calls.find(other.request_id)).call, { request_id: other.request_id })
    t.equal((await database.calls.find(newId('req'))).call, null)
    t.equal((await database.calls.find('nothing of ours')).call, null)
  })
})

t.test('usage copied in ranges', async (t) => {
  const HOUR_MS = 3_600_000
  const first = await openFresh(t, engines)

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

  t.test(
    'of several processes one copies; when it is gone another does, from the same range on',
    async (t) => {
      const { database, openAnother } = await openFresh(t, engines)
      await database.bookings.book([settlement(await newAccount(database))])
      const other = await openAnother()
      const range = await other.callCopy.claimRange()
      t.ok(range)
      t.equal(await database.callCopy.claimRange(), null)
      await other.close()
      t.same(await claimSoon(database), range)
    },
  )

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

  t.test(
    'a session that is lost in the middle of the rows fails, and the rows come again whole',
    async (t) => {
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
    },
  )
})
