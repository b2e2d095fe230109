import { createClient } from '@clickhouse/client'
import t from 'tap'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import { migrate, readMigrations } from '../../../src/clickhouse/migrate.ts'
import type { CallPageQuery, CallPosition } from '../../../src/clickhouse/pages/query.ts'
import { LIVE_NAMES, tablesOf } from '../../../src/clickhouse/tables/names.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { usageText } from '../../support/usage-text.ts'
import { BASE_INSTANT, bookedCall, pageOfAll } from './support.ts'

const everything = pageOfAll({ to: BASE_INSTANT * 2, order: 'asc', limit: 50 })

const idsOf = async (log: CallLog, query: Partial<CallPageQuery>): Promise<number[]> =>
  (await log.findCalls({ ...everything, ...query })).rows.map((row) => row.id)

t.test('the call log', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
  const log = callLogAt(t, engines.clickhouseUrl)
  const client = createClient({ url: engines.clickhouseUrl })
  t.teardown(() => client.close())
  t.beforeEach(async () => {
    await log.migrate()
    for (const table of tablesOf(LIVE_NAMES)) await client.command({ query: `TRUNCATE TABLE ${table}` })
  })

  t.test('two processes that start at once migrate without harm; once more changes nothing', async (t) => {
    await client.command({ query: 'DROP TABLE calls' })
    await client.command({ query: 'DROP TABLE tollgate_migrations' })
    const applied = await Promise.all([migrate(client), migrate(client)])
    const files = readMigrations().map((migration) => migration.file)
    t.ok(applied.some((list) => list.length === files.length))
    t.same(await migrate(client), [])
  })

  t.test('a row comes back as it was booked', async (t) => {
    const attempts = [
      {
        seq: 1,
        created_at: '2026-01-15T12:00:00.000Z',
        latency_ms: 7,
        error_code: 'upstream_error',
        error_message: 'a "b"\n',
      },
    ]
    const call = bookedCall(7, {
      status: 'error',
      error_code: 'upstream_error',
      error_message: "it's a \\ tab\there 'quoted' 漢字 😀",
      input_tokens: Number.MAX_SAFE_INTEGER,
      cached_tokens: 3,
      unit_count: '1.5',
      unit_type: 'audio',
      cost: '999999999912345678',
      attempts_count: null,
      attempts,
      call_count: 5,
      session_id: 'run "7"',
      ttfb_ms: null,
      channel_id: null,
    })
    await log.insertCalls({ token: 'one', text: usageText([call]) })
    const { rows, hasMore } = await log.findCalls(everything)
    t.equal(hasMore, false)
    t.same(rows, [
      {
        object: 'log',
        id: 7,
        created_at: '2026-01-15T12:00:00.007Z',
        submitted_at: '2026-01-15T11:59:59.967Z',
        key_id: 'key_a',
        key_name: 'first',
        key_prefix: 'sk-tollgate-0123abcd',
        model: 'sonata-large',
        status: 'error',
        error_code: 'upstream_error',
        error_message: "it's a \\ tab\there 'quoted' 漢字 😀",
        input_tokens: Number.MAX_SAFE_INTEGER,
        output_tokens: 20,
        cached_tokens: 3,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        server_tool_calls: 0,
        unit_count: '1.5',
        unit_type: 'audio',
        cost: '9999999999.12345678',
        latency_ms: 40,
        request_id: 'req_00000000000000000000000007',
        task_id: null,
        result_urls: [],
        result_expires_at: null,
        session_id: 'run "7"',
        call_count: 5,
        attempts_count: null,
        attempts,
      },
    ])
  })

  t.test('money is printed without exponent and trailing zeros', async (t) => {
    const costs = ['0', '1', '123000', '100000000', '1941000000']
    await log.insertCalls({
      token: 'costs',
      text: usageText(costs.map((cost, id) => bookedCall(id + 1, { cost }))),
    })
    const { rows } = await log.findCalls(everything)
    t.same(
      rows.map((row) => row.cost),
      ['0', '0.00000001', '0.00123', '1', '19.41'],
    )
  })

  t.test('a range that is sent twice, over two months, is there once', async (t) => {
    const december = Date.UTC(2025, 11, 31, 23, 59, 59, 999)
    const calls = [1, 2, 3, 4].map((id) => bookedCall(id, { created_at: december + (id % 2) }))
    await log.insertCalls({ token: 'usage-1-4', text: usageText(calls) })
    await log.insertCalls({ token: 'usage-1-4', text: usageText(calls) })
    t.same(await idsOf(log, {}), [2, 4, 1, 3])
    await log.insertCalls({
      token: 'usage-5-8',
      text: usageText(calls.map((call) => ({ ...call, id: call.id + 4n }))),
    })
    t.equal((await idsOf(log, {})).length, 8, 'the same rows under another token are other rows')
  })

  t.test('a range of which only the first month arrived is completed', async (t) => {
    const december = Date.UTC(2025, 11, 31, 23, 59, 59, 999)
    const calls = [1, 2].map((id) => bookedCall(id, { created_at: december + id - 1 }))
    await log.insertCalls({ token: 'usage-1-2', text: usageText(calls.slice(0, 1)) })
    await log.insertCalls({ token: 'usage-1-2', text: usageText(calls) })
    t.same(await idsOf(log, {}), [1, 2])
  })

  t.test('an empty range is no insert', async (t) => {
    await log.insertCalls({ token: 'usage-1-1', text: Buffer.alloc(0) })
    t.same(await idsOf(log, {}), [])
  })

  t.test('what each filter finds', async (t) => {
    const calls = [
      bookedCall(1),
      bookedCall(2, { account_id: 'acc_b' }),
      bookedCall(3, { key_id: 'key_b' }),
      bookedCall(4, { model: 'etude' }),
      bookedCall(5, { status: 'error', error_code: 'upstream_error' }),
      bookedCall(6, { unit_type: 'image', unit_count: '2' }),
      bookedCall(7, { unit_type: 'chat', status: 'rejected' }),
    ]
    await log.insertCalls({ token: 'filters', text: usageText(calls) })
    t.same(await idsOf(log, {}), [1, 3, 4, 5, 6, 7])
    t.same(await idsOf(log, { accountId: 'acc_b' }), [2])
    t.same(await idsOf(log, { accountId: "acc_a' OR 1 --" }), [])
    t.same(await idsOf(log, { keyId: 'key_b' }), [3])
    t.same(await idsOf(log, { models: ['etude', "o'neill\\"] }), [4])
    t.same(await idsOf(log, { statuses: ['error', 'rejected'] }), [5, 7])
    t.same(await idsOf(log, { statuses: [] }), [])
    t.same(await idsOf(log, { unitTypes: ['image'] }), [6])
    t.same(await idsOf(log, { unitTypes: ['chat'] }), [1, 3, 4, 5, 7], 'billed by tokens')
    t.same(await idsOf(log, { errorCodes: ['upstream_error'] }), [5])
    t.same(await idsOf(log, { ref: calls[3]!.request_id }), [4])
    t.same(await idsOf(log, { ref: calls[1]!.request_id }), [], 'of another account')
    t.same(
      await idsOf(log, { from: BASE_INSTANT + 4, to: BASE_INSTANT + 6 }),
      [4, 5],
      'from counts, to does not',
    )
  })

  t.test('a walk gives each row once, in both orders, over equal instants, while rows arrive', async (t) => {
    const instants = [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3]
    const calls = instants.map((offset, index) =>
      bookedCall(index + 1, { created_at: BASE_INSTANT + offset }),
    )
    await log.insertCalls({ token: 'walk', text: usageText(calls) })
    let arriving = 100
    for (const order of ['asc', 'desc'] as const) {
      const seen: number[] = []
      let after: CallPosition | null = null
      const window = { to: BASE_INSTANT + 10 }
      for (;;) {
        const page = await log.findCalls({ ...everything, ...window, order, limit: 2, after })
        seen.push(...page.rows.map((row) => row.id).filter((id) => id < 100))
        const last = page.rows.at(-1)!
        after = { createdAt: Date.parse(last.created_at), id: last.id }
        if (!page.hasMore) break
        const id = arriving++
        await log.insertCalls({
          token: `arrive-${id}`,
          text: usageText([bookedCall(id, { created_at: BASE_INSTANT + (id % 4) })]),
        })
      }
      const expected = calls.map((call) => Number(call.id))
      t.same(seen, order === 'asc' ? expected : expected.reverse(), order)
    }
  })

  t.test('sums of a month are exact, by account, up to a row', async (t) => {
    const month = Date.UTC(2025, 11, 31)
    const calls = [
      bookedCall(1, { cost: '10' }),
      bookedCall(2, { cost: '999999999999999999' }),
      bookedCall(3, { cost: '3', account_id: 'acc_b' }),
      bookedCall(4, { cost: '5', created_at: month }),
      bookedCall(5, { cost: '100', account_id: 'acc_c' }),
    ]
    await log.insertCalls({ token: 'sums', text: usageText(calls) })
    const order = ({ month, accountId }: { month: string; accountId: string }) => month + accountId
    const sums = (await log.monthSums({ from: 0n, upto: 4n, admittedSince: 0 })).sort((a, b) =>
      order(a) < order(b) ? -1 : 1,
    )
    t.strictSame(sums, [
      { accountId: 'acc_a', month: '202512', rows: 1n, ids: 4n, cost: 5n },
      { accountId: 'acc_a', month: '202601', rows: 2n, ids: 3n, cost: 1000000000000000009n },
      { accountId: 'acc_b', month: '202601', rows: 1n, ids: 3n, cost: 3n },
    ])
  })

  t.test('lost tables are created again', async (t) => {
    await client.command({ query: 'DROP TABLE calls' })
    await client.command({ query: 'DROP TABLE tollgate_migrations' })
    await log.insertCalls({ token: 'fresh', text: usageText([bookedCall(1)]) })
    t.same(await idsOf(log, {}), [1])
  })

  t.test('while ClickHouse is stopped a reader gets an error; what was there is there after', async (t) => {
    await log.insertCalls({ token: 'kept', text: usageText([bookedCall(1)]) })
    await engines.stopEngine('clickhouse')
    await t.rejects(log.findCalls(everything), { name: 'Failure', code: 'service_unavailable' })
    await t.rejects(log.ping())
    await engines.startEngine('clickhouse')
    await log.ping()
    await log.insertCalls({ token: 'kept', text: usageText([bookedCall(1)]) })
    t.same(await idsOf(log, {}), [1], 'the range sent before the stop is still known')
  })
})
