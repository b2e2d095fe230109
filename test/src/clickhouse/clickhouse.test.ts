/** The call log in ClickHouse: its tables, pages, sums by day, and statements for a cluster. */
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import t, { type Test } from 'tap'
import type { CallPageQuery, CallPosition } from '../../../schemas/call-log/page-query.ts'
import { type CallLog, openCallLog } from '../../../src/clickhouse/call-log.ts'
import { checkTables, commandOnCluster, onCluster } from '../../../src/clickhouse/cluster.ts'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate, readMigrations } from '../../../src/clickhouse/migrate.ts'
import { PAGE_COLUMNS, type PageRow, parsePageRow, toLogRow } from '../../../src/clickhouse/pages/call-row.ts'
import { listSteps } from '../../../src/clickhouse/pages/steps.ts'
import { insertCalls } from '../../../src/clickhouse/tables/insert-calls.ts'
import { MARKS_TABLE } from '../../../src/clickhouse/tables/marks.ts'
import { FRESH_NAMES, LIVE_NAMES, listTables, listViews } from '../../../src/clickhouse/tables/names.ts'
import { createRebuildTables } from '../../../src/clickhouse/tables/rebuild.ts'
import { dropCallsBefore } from '../../../src/clickhouse/tables/retention.ts'
import { withSharedIds } from '../../../src/core/call-log/shared-ids.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { callLogAt, freshClickHouse } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { type BookedCall, usageText } from '../../support/usage-text.ts'
import { BASE_INSTANT, bookedCall, pageOfAll } from './support.ts'

const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })

t.test('call log', async (t) => {
  const everything = pageOfAll({ to: BASE_INSTANT * 2, order: 'asc', limit: 50 })

  const idsOf = async (log: CallLog, query: Partial<CallPageQuery>): Promise<number[]> =>
    (await log.findCalls({ ...everything, ...query })).rows.map((row) => row.id)

  t.test('the call log', async (t) => {
    const url = await freshClickHouse(engines.clickhouseUrl)
    const log = callLogAt(t, url)
    const client = createClient({ url })
    t.teardown(() => client.close())
    t.beforeEach(async () => {
      await log.migrate()
      for (const table of listTables(LIVE_NAMES)) await client.command({ query: `TRUNCATE TABLE ${table}` })
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
      t.same(await idsOf(log, { keyIds: ['key_b'] }), [3])
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

    t.test(
      'a walk gives each row once, in both orders, over equal instants, while rows arrive',
      async (t) => {
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
      },
    )

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
      const sums = (await log.sumMonths({ from: 0n, upto: 4n, admittedSince: 0 })).sort((a, b) =>
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
})

t.test('page finds all of a long window', async (t) => {
  // A page of years is looked for in steps; it is the page all the same.
  const DAY_MS = 86_400_000
  const HOUR_MS = 3_600_000
  const NOW = Date.UTC(2026, 5, 15, 12)
  const everything = pageOfAll({ to: NOW + 1, order: 'desc', limit: 3 })
  const ORDERS = ['asc', 'desc'] as const

  t.test('the steps lie side by side and hold the whole window that is left', (t) => {
    const ends = [0, NOW - 400 * DAY_MS, NOW - 33 * DAY_MS, NOW - DAY_MS, NOW, NOW + 900 * DAY_MS]
    const afters = [null, ...ends.map((createdAt) => ({ createdAt, id: 7 }))]
    for (const from of ends)
      for (const to of ends.filter((end) => end > from))
        for (const after of afters)
          for (const order of ORDERS) {
            const steps = listSteps({ ...everything, from, to, after, order }, NOW)
            const inTime = order === 'asc' ? steps : steps.toReversed()
            t.equal(inTime[0]?.from, from)
            t.equal(inTime.at(-1)?.to, to)
            for (const [index, step] of inTime.entries()) {
              t.ok(step.from < step.to)
              if (index > 0) t.equal(step.from, inTime[index - 1]!.to)
            }
          }
    t.same(listSteps({ ...everything, from: NOW, to: NOW }, NOW), [], 'an empty window holds nothing')
    const narrowed = { ...everything, statuses: [] }
    const ref = newId('req', NOW)
    const [near, shared, later] = listSteps({ ...everything, ref }, NOW)
    t.same(shared, { ...near, isShared: true })
    t.same(later, { from: NOW - DAY_MS, to: everything.to }, 'no call ended long before it was made')
    t.same(listSteps({ ...everything, ref: 'of another form' }, NOW), [
      { from: everything.from, to: everything.to },
    ])
    t.same(listSteps(narrowed, NOW), [{ from: 0, to: NOW + 1 }], 'what is rare is looked for at once')
    t.same(listSteps({ ...narrowed, from: NOW, to: NOW }, NOW), [], 'an empty window holds nothing of it')
    t.end()
  })

  t.test('in the log', async (t) => {
    const log = callLogAt(t, await freshClickHouse(engines.clickhouseUrl))

    // Four years with gaps of months, bursts within a millisecond, and calls of tomorrow.
    const agesInDays = [-1, 0, 0, 0, 1, 2, 31, 31.9, 32, 32.1, 33, 33, 100, 364, 366, 366, 366, 800, 1500]
    const calls: BookedCall[] = agesInDays.map((age, index) =>
      bookedCall(index + 1, {
        created_at: NOW - age * DAY_MS,
        model: index % 3 === 0 ? 'etude' : 'sonata-large',
        status: index % 4 === 0 ? 'error' : 'success',
      }),
    )
    await log.insertCalls({ token: 'usage-1-19', text: usageText(calls) })

    async function walk(query: CallPageQuery): Promise<number[]> {
      const ids: number[] = []
      for (let after: CallPosition | null = query.after; ; ) {
        const page = await log.findCalls({ ...query, after })
        const listed = await log.listPositions({ ...query, after })
        t.same(
          listed.positions.map(({ id }) => id),
          page.rows.map(({ id }) => id),
          'the positions are those of the rows',
        )
        t.equal(listed.hasMore, page.hasMore)
        ids.push(...page.rows.map(({ id }) => id))
        if (!page.hasMore) return ids
        after = listed.positions.at(-1)!
      }
    }
    const expected = (order: 'asc' | 'desc', isWanted: (call: BookedCall) => boolean): number[] => {
      const sorted = calls
        .filter(isWanted)
        .sort((a, b) => a.created_at - b.created_at || Number(a.id - b.id))
        .map(({ id }) => Number(id))
      return order === 'asc' ? sorted : sorted.reverse()
    }

    t.test('a walk over years gives each row once, in both orders, whatever narrows', async (t) => {
      const to = NOW + 2 * DAY_MS
      for (const order of ORDERS) {
        t.same(
          await walk({ ...everything, to, order }),
          expected(order, () => true),
          order,
        )
        t.same(
          await walk({ ...everything, to, order, limit: 1, models: ['etude'], statuses: ['error'] }),
          expected(order, ({ model, status }) => model === 'etude' && status === 'error'),
          `${order}, narrowed`,
        )
        const from = NOW - 365 * DAY_MS
        t.same(
          await walk({ ...everything, from, order, limit: 2 }),
          expected(order, ({ created_at }) => created_at >= from && created_at <= NOW),
          `${order}, a year`,
        )
      }
    })

    t.test('a request is found whenever it ended, within the window', async (t) => {
      const madeAt = NOW - 200 * DAY_MS
      const ends = [-10_000, 0, 5_000, HOUR_MS - 1, HOUR_MS, 90 * DAY_MS, -DAY_MS]
      const refs = ends.map((after, index) => {
        const request_id = newId('req', madeAt)
        return bookedCall(100 + index, { request_id, created_at: madeAt + after })
      })
      await log.insertCalls({ token: 'usage-100-106', text: usageText(refs) })
      for (const { request_id, created_at, id } of refs) {
        const find = async (more: Partial<CallPageQuery> = {}) =>
          (await log.findCalls({ ...everything, ref: request_id, ...more })).rows.map((row) => row.id)
        t.same(await find(), [Number(id)], `ended ${created_at - madeAt} ms after it was made`)
        t.same(await find({ from: created_at + 1 }), [], 'before the window')
        t.same(await find({ to: created_at }), [], 'behind the window')
        t.same(await find({ models: ['etude'] }), [], 'of another model')
      }
    })

    t.test('each of the refused calls that share a row is found by its request id', async (t) => {
      const madeAt = NOW - 100 * DAY_MS
      const ids = Array.from({ length: 5 }, () => newId('req', madeAt))
      const shared = bookedCall(200, {
        request_id: ids[0]!,
        status: 'rejected',
        error_code: 'rate_limit_exceeded',
        call_count: ids.length,
        detail: withSharedIds('{"endpoint":"/v1/x"}', ids)!,
        created_at: madeAt + 8_000,
      })
      const alone = bookedCall(201, { created_at: madeAt + 8_000, request_id: newId('req', madeAt) })
      await log.insertCalls({ token: 'usage-200-201', text: usageText([shared, alone]) })
      const find = async (ref: string, more: Partial<CallPageQuery> = {}) =>
        (await log.findCalls({ ...everything, ref, ...more })).rows.map((row) => row.id)
      for (const id of ids) {
        t.same(await find(id), [200])
        t.same(await find(id, { keyIds: ['key_a'], statuses: ['rejected'] }), [200])
        t.same(await find(id, { errorCodes: ['rate_limit_exceeded'] }), [200])
        t.same(await find(id, { statuses: ['success'] }), [])
        t.same(await find(id, { accountId: 'acc_b' }), [], 'of another account')
        t.same(await find(id, { keyIds: ['key_b'] }), [], 'of another key')
      }
      t.same(await find(alone.request_id), [201])
      t.same(await find(newId('req', madeAt)), [])
    })
  })
})

t.test('rollup counts each call once', async (t) => {
  // The sums by day are those of the calls, whatever is sent twice or breaks off.
  const DAY_END = Date.UTC(2026, 0, 31, 23, 59, 59, 999)
  const TABLES = [
    ...listViews(LIVE_NAMES),
    ...listTables(LIVE_NAMES),
    'tollgate_marks',
    'tollgate_migrations',
  ]

  const SUMS = `
  account_id, day, model, key_id, status, sum(requests) AS requests, toString(sum(cost)) AS cost,
  sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached`
  const MODEL_SUMS = SUMS.replace('key_id, ', '')
  const FROM_CALLS = `
  SELECT account_id, toDate(created_at, 'UTC') AS day, model, key_id, status, call_count AS requests, cost,
         input_tokens, output_tokens, cached_tokens FROM calls`

  t.test('the sums by day', async (t) => {
    const url = await freshClickHouse(engines.clickhouseUrl)
    // Errors are expected here, and checked.
    const client = createClient({ url, log: { level: ClickHouseLogLevel.OFF } })
    t.teardown(() => client.close())
    const run = (query: string) => client.command({ query })
    const list = async <Row = Record<string, string>>(query: string) =>
      (await client.query({ query, format: 'JSONEachRow' })).json<Row>()

    async function sums(from: string) {
      return list(`SELECT ${SUMS} FROM (${from}) GROUP BY ALL ORDER BY ALL`)
    }
    async function assertAgree(t: Test, requests: number, message: string) {
      const found = await sums('SELECT * FROM calls_by_day')
      t.strictSame(found, await sums(FROM_CALLS), message)
      t.strictSame(
        await list(`SELECT ${MODEL_SUMS} FROM calls_by_model GROUP BY ALL ORDER BY ALL`),
        await list(`SELECT ${MODEL_SUMS} FROM (${FROM_CALLS}) GROUP BY ALL ORDER BY ALL`),
        `${message}: without keys`,
      )
      const failed = `SELECT * EXCEPT (detail, upstream_cost) FROM calls WHERE status != 'success' OR error_code != '' ORDER BY id`
      t.strictSame(
        await list('SELECT * FROM calls_failed ORDER BY id'),
        await list(failed),
        `${message}: failed calls`,
      )
      const stored = await list<{ page_row: string }>('SELECT page_row FROM calls_failed ORDER BY id')
      const shown = await list<PageRow>(failed.replace('* EXCEPT (detail, upstream_cost)', PAGE_COLUMNS))
      t.strictSame(
        stored.map((row) => toLogRow(parsePageRow(row.page_row))),
        shown.map(toLogRow),
        `${message}: pages of failed calls`,
      )
      t.equal(
        found.reduce((total, row) => total + Number(row.requests), 0),
        requests,
        `${message}: ${requests} calls`,
      )
    }
    /** Ids from the first on, over two months, of different accounts, models, keys and states. */
    const calls = (first: number, count: number) =>
      usageText(
        Array.from({ length: count }, (_, index) => {
          const id = first + index
          return bookedCall(id, {
            account_id: `acc_${id % 3}`,
            created_at: DAY_END + (id % 2),
            model: id % 5 === 0 ? 'etude' : 'sonata-large',
            key_id: `key_${id % 4}`,
            status: id % 7 === 0 ? 'error' : 'success',
            cost: String(id * 1_000_003),
            cached_tokens: id,
            ...(id % 7 === 0 && {
              error_code: 'upstream_error',
              error_message: `The "upstream" said\n\\${id} ü`,
              result_urls: [`https://files.example/${id}?a=b`],
              result_expires_at: DAY_END,
              attempts: [
                { seq: 1, created_at: '', latency_ms: 4, error_code: 'upstream_error', error_message: null },
              ],
              attempts_count: 1,
            }),
          })
        }),
      )

    t.beforeEach(async () => {
      for (const table of TABLES) await run(`DROP TABLE IF EXISTS ${table} SYNC`)
    })

    t.test('a range that is sent again is summed once, also after rows were merged', async (t) => {
      await migrate(client)
      for (let round = 0; round < 2; round++) {
        await insertCalls(client, { token: 'usage-1-40', text: calls(1, 40) })
        await insertCalls(client, { token: 'usage-41-60', text: calls(41, 20) })
      }
      await assertAgree(t, 60, 'sent twice')
      await run('OPTIMIZE TABLE calls_by_day FINAL')
      await assertAgree(t, 60, 'merged')
      await insertCalls(client, { token: 'usage-1-40', text: calls(1, 40) })
      await assertAgree(t, 60, 'sent again after the merge')
    })

    t.test('a row that stands for many calls counts as many', async (t) => {
      await migrate(client)
      const refused = { status: 'rejected', error_code: 'quota_exceeded', cost: '0' } as const
      const rows = [bookedCall(1, refused), bookedCall(2, { ...refused, call_count: 1400 }), bookedCall(3)]
      await insertCalls(client, { token: 'usage-1-3', text: usageText(rows) })
      await assertAgree(t, 1402, 'in the sums')
      const log = callLogAt(t, url)
      const HOUR_MS = 3_600_000
      for (const hours of [1, 48]) {
        const window = { from: BASE_INSTANT - hours * HOUR_MS, to: BASE_INSTANT + hours * HOUR_MS }
        const { byStatus } = await log.summarizeCalls({ accountId: 'acc_a', keyIds: null, ...window })
        t.match(
          byStatus.find(({ status }) => status === 'rejected'),
          { requests: 1401 },
          hours === 1 ? 'of a part of a day' : 'of whole days',
        )
      }
      t.match(await log.sumUsage({ keyIds: null, accountId: 'acc_a', from: 0, to: DAY_END * 2 }), {
        requests: 1402,
      })
    })

    t.test('an insert that fails between table and sums is completed by the next try', async (t) => {
      await migrate(client)
      const [view] = await list(`SELECT as_select FROM system.tables WHERE name = 'calls_by_day_view'`)
      const query = view!.as_select!.replace(/ FROM \w+\.calls /, ' FROM calls ')
      await run(
        `ALTER TABLE calls_by_day_view MODIFY QUERY ${query.replace('GROUP BY', 'WHERE NOT throwIf(id = 7) GROUP BY')}`,
      )
      await insertCalls(client, { token: 'usage-1-5', text: calls(1, 5) })
      await t.rejects(insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) }), { code: '395' })
      const [counted] = await list(
        'SELECT (SELECT count() FROM calls) AS calls, (SELECT sum(requests) FROM calls_by_day) AS summed',
      )
      t.ok(Number(counted!.calls) > Number(counted!.summed), 'the table has rows that the sums lack')
      await run(`ALTER TABLE calls_by_day_view MODIFY QUERY ${query}`)
      await insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) })
      await assertAgree(t, 15, 'sent again')
      await insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) })
      await assertAgree(t, 15, 'and once more')
    })

    t.test('an insert that reached the table alone is completed by the next try', async (t) => {
      await migrate(client)
      await run('DETACH TABLE calls_by_day_view')
      await insertCalls(client, { token: 'usage-1-10', text: calls(1, 10) })
      await run('ATTACH TABLE calls_by_day_view')
      t.strictSame(await list('SELECT * FROM calls_by_day'), [])
      await insertCalls(client, { token: 'usage-1-10', text: calls(1, 10) })
      await assertAgree(t, 10, 'sent again')
    })

    t.test('migrations that are applied again, behind new calls, add nothing', async (t) => {
      await migrate(client)
      await insertCalls(client, { token: 'usage-1-30', text: calls(1, 30) })
      for (const { apply } of readMigrations()) await apply(client)
      await assertAgree(t, 30, 'applied again')
    })

    t.test('a start that was broken off behind any migration is completed by the next', async (t) => {
      for (const steps of [1, 3, 5, 6]) {
        for (const table of TABLES) await run(`DROP TABLE IF EXISTS ${table} SYNC`)
        for (const { apply } of readMigrations().slice(0, steps)) await apply(client)
        await Promise.all([migrate(client), migrate(client), migrate(client)])
        await insertCalls(client, { token: 'usage-1-30', text: calls(1, 30) })
        await assertAgree(t, 30, `broken off behind migration ${steps}`)
      }
    })
  })
})

t.test('merged parts reach the disk', async (t) => {
  // Every table of the call log writes merged parts to the disk before it removes the former ones, in few files.
  /** 22 where each skip index has two files. */
  const MAX_FILES = 15

  t.test('the parts of the call log', async (t) => {
    const client = connect(await freshClickHouse(engines.clickhouseUrl))
    t.teardown(() => client.close())
    const list = async <Row>(query: string) =>
      (await client.query({ query, format: 'JSONEachRow' })).json<Row>()
    await migrate(client)
    await createRebuildTables(client)

    t.test('of each table, also of a rebuilt one', async (t) => {
      const tables = await list<{ name: string; engine_full: string }>(
        'SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()',
      )
      for (const name of [...listTables(LIVE_NAMES), ...listTables(FRESH_NAMES), MARKS_TABLE])
        t.match(
          tables.find((table) => table.name === name)?.engine_full,
          /fsync_after_insert = 1,.* min_compressed_bytes_to_fsync_after_merge = 1\b/,
          name,
        )
    })

    t.test('have few files, inserted and merged', async (t) => {
      const files = async () => {
        const parts = await list<{ files: string }>(
          "SELECT files FROM system.parts WHERE database = currentDatabase() AND table = 'calls' AND active",
        )
        return parts.map((part) => Number(part.files))
      }
      const texts = [1, 2].map((id) => usageText([bookedCall(id)]))
      for (const [index, text] of texts.entries())
        await insertCalls(client, { token: `usage-${index}`, text })
      const inserted = await files()
      await client.command({ query: 'OPTIMIZE TABLE calls FINAL' })
      const merged = await files()
      t.equal(merged.length, 1)
      for (const count of [...inserted, ...merged]) t.ok(count <= MAX_FILES, `${count} files`)
    })
  })
})

t.test('statements for a cluster', async (t) => {
  // What the call log sends to a cluster, by rule: every statement reaches all servers, every table is replicated, and
  // inserts are deduplicated. No cluster can be run here, see docs/cluster.md, "A ClickHouse cluster".
  interface Sent {
    readonly query_params?: Readonly<Record<string, unknown>>
    readonly query: string
    readonly clickhouse_settings?: Readonly<Record<string, unknown>>
  }

  /** The position of the last row of a full statement, when calls are taken over. */
  const POSITION = { account: 'acc_one', at: '1767225600000', id: '7' }

  /** A client that keeps commands and inserts; its tables are empty but for the positions of calls that are taken over. */
  function recorder() {
    const positions = [POSITION]
    const commands: Sent[] = []
    const inserts: Sent[] = []
    const client = {
      command: async (sent: Sent) => void commands.push(sent),
      insert: async (sent: Sent) => void inserts.push(sent),
      query: async ({ query }: Sent) => ({
        json: async () =>
          /count\(\) AS open/.test(query)
            ? [{ open: '0', trouble: '' }]
            : /DISTINCT _partition_id/.test(query)
              ? [
                  { year: '2024', month: '202412' },
                  { year: '2026', month: '202601' },
                ]
              : /AS (?:tables|value)/.test(query)
                ? [{ tables: '0', value: '0' }]
                : /merge_tree_settings/.test(query)
                  ? [{ name: 'min_bytes_for_wide_part' }]
                  : /OFFSET/.test(query)
                    ? positions.splice(0)
                    : /AS rows/.test(query)
                      ? [{ rows: 100_001 }]
                      : [],
      }),
    } as unknown as ClickHouseClient
    return { client, commands, inserts }
  }

  async function everything(cluster: string | null) {
    const { client, commands, inserts } = recorder()
    if (cluster !== null) commandOnCluster(client, cluster)
    await migrate(client)
    const tables = await createRebuildTables(client)
    await tables.insertCalls({ token: 'range', text: Buffer.from('2026-01-01 00:00:00.000\n') })
    await tables.keepCallsBefore(Date.UTC(2026, 0))
    await tables.swap()
    await dropCallsBefore(client, Date.UTC(2026, 5, 1))
    return { commands, inserts }
  }

  const withoutComments = (query: string): string =>
    query
      .replace(/--[^\n]*/g, '')
      .replace(/\s+/g, ' ')
      .trim()
  const one = await everything(null)
  const all = await everything("o'hare")

  t.test('the same statements are sent, in the same order', async (t) => {
    const name = ({ query }: Sent) =>
      withoutComments(query)
        .replace(/ ON CLUSTER '[^ ]+'( SYNC)?/, '')
        .slice(0, 40)
    t.same(all.commands.map(name), one.commands.map(name))
    const named = all.commands.map(({ query }) => query).join('\n')
    for (const table of [...listTables(LIVE_NAMES), ...listViews(LIVE_NAMES), ...listTables(FRESH_NAMES)])
      t.match(named, new RegExp(`CREATE [A-Z ]+ ${table} ON CLUSTER `), table)
  })

  t.test('each reaches every server', async (t) => {
    for (const { query, clickhouse_settings } of all.commands) {
      const text = withoutComments(query)
      const isPassedOn =
        /^(ALTER TABLE|DELETE FROM|INSERT INTO) /.test(text) && !/ MODIFY SETTING /.test(text)
      t.equal(/ ON CLUSTER 'o\\'hare'/.test(text), !isPassedOn, text.slice(0, 80))
      t.match(clickhouse_settings, { alter_sync: '2', distributed_ddl_output_mode: 'throw' })
      if (text.startsWith('DROP')) t.match(text, / SYNC$/)
      if (/^EXCHANGE/.test(text)) t.match(text, / AND \w+ ON CLUSTER '[^ ]+'$/)
    }
    for (const { query } of one.commands) t.notMatch(query, /CLUSTER|Replicated|SYNC$/)
  })

  t.test('every table with rows is replicated, and knows the ranges that it has', async (t) => {
    const created = all.commands
      .map(({ query }) => withoutComments(query))
      .filter((text) => / ENGINE = /.test(text))
    t.ok(created.length >= 7)
    for (const text of created) {
      t.match(text, / ENGINE = Replicated(Summing|Replacing)?MergeTree[ (]/)
      t.notMatch(
        text,
        /non_replicated|ReplicatedMergeTree\(/,
        'the path is the one of the server, by the id of the table',
      )
      if (/ (calls|costs)\w* ON| tollgate_marks ON/.test(text))
        t.match(
          text,
          /replicated_deduplication_window = 10?000+, replicated_deduplication_window_seconds = 604800/,
        )
    }
    const engines = (commands: readonly Sent[]) =>
      commands.flatMap(({ query }) => /ENGINE = (?:Replicated)?(\S+)/.exec(query)?.[1] ?? [])
    t.same(engines(all.commands), engines(one.commands))
  })

  t.test('inserts have tokens, also for the views, and wait for most replicas', async (t) => {
    const [range] = all.inserts.filter(
      ({ clickhouse_settings: set }) => set?.deduplicate_blocks_in_dependent_materialized_views,
    )
    t.match(range?.clickhouse_settings, {
      insert_quorum: 'auto',
      insert_deduplicate: 1,
      insert_deduplication_token: 'range:2026-01',
      deduplicate_blocks_in_dependent_materialized_views: 1,
    })
    for (const { clickhouse_settings } of all.inserts) t.match(clickhouse_settings, { insert_quorum: 'auto' })
    for (const { clickhouse_settings } of one.inserts) t.notOk(clickhouse_settings?.insert_quorum)
  })

  t.test(
    'calls are taken over by statements of few rows, in turn, which wait for most replicas',
    async (t) => {
      const taken = ({ commands }: { commands: readonly Sent[] }) =>
        commands.filter(({ query }) => query.startsWith('INSERT INTO'))
      t.match(
        taken(all).map(({ query_params }) => query_params),
        [{ account: '', at: '0', id: '0' }, POSITION],
      )
      for (const { query, clickhouse_settings } of taken(all)) {
        t.match(query, /^INSERT INTO calls_rebuilt SELECT .* LIMIT \{rows:UInt32\}$/s)
        t.match(clickhouse_settings, { insert_quorum: 'auto' })
      }
      t.equal(taken(one).length, 2)
    },
  )

  t.test('a statement of an unknown form is refused: it would reach one server', async (t) => {
    for (const query of [
      'RENAME TABLE a TO b',
      'TRUNCATE TABLE a',
      'CREATE DICTIONARY a (b UInt8)',
      'SELECT 1',
    ])
      t.throws(() => onCluster(query, 'c'), /cannot be run on a cluster/)
  })

  t.test('tables of another setting are refused, before anything is changed', async (t) => {
    const { clickhouseUrl } = engines
    const client = connect(clickhouseUrl)
    t.teardown(() => client.close())
    await checkTables(client, null)
    await t.rejects(checkTables(client, 'c'), /are those of a single server .*calls.*logs rebuild/)
    const log = openCallLog(clickhouseUrl, 'c')
    t.teardown(() => log.close())
    await t.rejects(log.migrate(), /are those of a single server/)
  })
})
