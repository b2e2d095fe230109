/** The call log as it is read: pages, sums, exports, and what runs now. */
import { deepEqual } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@clickhouse/client'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { openFreshPages } from '../../../pipelines/call-log/fresh-pages.ts'
import { BOOKED_COLUMNS, COPIED_COLUMNS, findColumn } from '../../../schemas/call-log/columns.ts'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type { CallPageQuery } from '../../../schemas/call-log/page-query.ts'
import { IN_FLIGHT_MAX_JOBS, type LogPage, logPage } from '../../../schemas/call-log/query.ts'
import { LOG_CSV_MAX_ROWS } from '../../../schemas/call-log/row.ts'
import {
  LOG_SUMMARY_CACHE_SECONDS,
  type LogSummary,
  logSummary as summarySchema,
} from '../../../schemas/call-log/summary.ts'
import { CALL_STATUSES, UNIT_TYPES } from '../../../schemas/call-log/words.ts'
import { ONE_CREDIT, printCredits } from '../../../schemas/money.ts'
import { type CallLog, openCallLog } from '../../../src/clickhouse/call-log.ts'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate as migrateCallLog } from '../../../src/clickhouse/migrate.ts'
import { STORED_PAGE_EXPRESSION } from '../../../src/clickhouse/pages/call-row.ts'
import { LIVE_NAMES, listTables } from '../../../src/clickhouse/tables/names.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { NewTask } from '../../../src/postgres/tasks/types.ts'
import { Random } from '../../simulation/random.ts'
import { bookedCall, pageOfAll } from '../../src/clickhouse/support.ts'
import { newAccount, settlement, startDatabase } from '../../src/postgres/support.ts'
import { created, move, newVideo } from '../../src/postgres/tasks/support.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { type BookedCall, usageText } from '../../support/usage-text.ts'
import {
  logSummary,
  logs,
  NO_OPEN_JOBS,
  type Reader,
  type Received,
  reader,
  receive,
  request,
} from './support.ts'
import { CopyBench } from './usage-copy-support.ts'

t.test('logs', async (t) => {
  const NOW = Date.UTC(2026, 2, 10, 15, 30, 0, 250)
  const HOUR_MS = 3_600_000
  const CURSOR_KEY = Buffer.alloc(32, 7)

  t.test('GET /v1/logs', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const callLog = callLogAt(t, engines.clickhouseUrl)

    const mine = reader('acc_a', 'key_a')
    const whole = reader('acc_a', 'key_a', { accountLogs: true })
    const read = async (query: string, who: Reader = mine, now: number = NOW): Promise<LogPage> => {
      const handler = logs({ callLog, tasks: NO_OPEN_JOBS, cursorKey: CURSOR_KEY, now: () => now })
      return logPage.parse(await jsonOf(handler(who, request(query))))
    }
    const ids = async (query: string, who: Reader = mine, now: number = NOW): Promise<number[]> =>
      (await read(query, who, now)).data.map((row) => row.id)
    const refused = (t: Test, query: string, code: string, message: RegExp, who: Reader = mine) =>
      t.rejects(read(query, who), { name: 'Failure', code, message }, query)

    const attempt = {
      seq: 1,
      created_at: '2026-03-10T15:00:00.000Z',
      latency_ms: 9,
      error_code: 'upstream_error',
      error_message: 'busy',
    }
    await callLog.insertCalls({
      token: 'logs-test',
      text: usageText([
        bookedCall(1, { created_at: Date.UTC(2025, 0, 1) }),
        bookedCall(2, { created_at: Date.UTC(2026, 1, 28, 23, 59, 59, 999) }),
        bookedCall(3, { created_at: Date.UTC(2026, 2, 1) }),
        bookedCall(4, { created_at: NOW - 7 * 24 * HOUR_MS - 1 }),
        bookedCall(5, { created_at: NOW - 7 * 24 * HOUR_MS }),
        bookedCall(6, {
          created_at: Date.UTC(2026, 2, 9, 23, 59, 59, 999),
          status: 'error',
          attempts: [attempt],
        }),
        bookedCall(7, {
          created_at: Date.UTC(2026, 2, 10),
          status: 'rejected',
          cost: '0',
          session_id: 'run 7',
        }),
        bookedCall(8, { created_at: NOW, status: 'interrupted', cost: '1941000000' }),
        bookedCall(9, { created_at: NOW, key_id: 'key_b', session_id: 'run 7' }),
        bookedCall(10, { created_at: NOW, account_id: 'acc_z', key_id: 'key_z' }),
      ]),
    })

    t.test('answers the documented shape', async (t) => {
      const page = await read('period=today')
      t.match(page, {
        object: 'list',
        currency: 'points',
        scope: 'key',
        period_from: '2026-03-10T00:00:00.000Z',
        period_to: '2026-03-10T15:30:00.251Z',
        has_more: false,
        next_cursor: null,
      })
      t.same(
        page.data.map((row) => [row.id, row.cost, row.created_at]),
        [
          [8, '19.41', '2026-03-10T15:30:00.250Z'],
          [7, '0', '2026-03-10T00:00:00.000Z'],
        ],
      )
      t.notOk('in_flight' in page)
    })

    t.test('a period is a window in UTC', async (t) => {
      t.same(await ids('period=today&order=asc'), [7, 8])
      t.same(await ids('period=7d&order=asc'), [5, 6, 7, 8])
      t.same(await ids('period=this_month&order=asc'), [3, 4, 5, 6, 7, 8])
      t.same(await ids('period=30d&order=asc'), [2, 3, 4, 5, 6, 7, 8])
      t.same(await ids('order=asc'), [2, 3, 4, 5, 6, 7, 8], '30d is the default')
      t.same(await ids('period=all&order=asc'), [1, 2, 3, 4, 5, 6, 7, 8])
      await refused(t, 'period=year', 'invalid_request', /period.*"year".*today, 7d, 30d, this_month, all/)
    })

    t.test('from and to: a day as to is included, an instant is not, and both may be mixed', async (t) => {
      t.same(await ids('from=2026-02-28&to=2026-02-28'), [2])
      t.same(await ids('from=2026-02-28&to=2026-03-01&order=asc'), [2, 3])
      t.same(await ids('from=2026-02-28&to=2026-03-01T00:00:00Z'), [2])
      t.same(await ids('from=2026-02-28T23:59:59.999Z&to=2026-03-01T00:00:00.001Z&order=asc'), [2, 3])
      t.same(
        await ids('from=2026-02-28T23:59:59.9991Z&to=2026-03-01T00:00:00.0001Z'),
        [3],
        'below a millisecond',
      )
      t.same(await ids('from=2026-03-01T02:00:00+02:00&to=2026-03-01'), [3], 'the plus sign unescaped')
      t.same(
        await ids('from=2026-03-01T02:00:00%2B02:00&to=2026-03-01&period=nonsense'),
        [3],
        'period is ignored',
      )
      t.same(await ids('from=2026-02-28&to=9999-12-31&period=today&order=asc'), [2, 3, 4, 5, 6, 7, 8])
      t.same(await ids('from=2026-03-01T00:00:00Z&to=2026-03-01T00:00:00Z'), [], 'an empty window')
      t.match(
        await read('from=0000-01-01T00:00:00%2B01:00&to=9999-12-31'),
        { period_from: '0000-01-01T00:00:00.000Z', period_to: '9999-12-31T23:59:59.999Z' },
        'years have four digits',
      )
    })

    t.test('a range that makes no sense is refused with what is allowed', async (t) => {
      await refused(t, 'from=2026-03-01', 'invalid_request', /to.*together/)
      await refused(t, 'from=&to=2026-03-01', 'invalid_request', /from.*together/)
      await refused(t, 'from=2026-03-02&to=2026-03-01', 'invalid_request', /from: must not be after to/)
      await refused(t, 'limit=', 'invalid_request', /limit: must be a whole number/)
      for (const bad of [
        'yesterday',
        '2026-02-30',
        '2026-3-1',
        '1767225600',
        '2026-03-01T25:00:00Z',
        '2026-03-01T00:00:00',
      ])
        await refused(t, `from=${bad}&to=2026-03-01`, 'invalid_request', /^Parameter from: .*RFC 3339/)
    })

    t.test('status takes a comma list, and a misspelled one is refused', async (t) => {
      t.same(await ids('period=all&status=rejected,interrupted'), [8, 7])
      t.same(await ids('period=today&status='), [8, 7], 'empty is no filter')
      t.same(await ids('period=today&status=,'), [8, 7])
      await refused(
        t,
        'status=sucess',
        'invalid_request',
        /status.*"sucess".*success, error, interrupted, rejected/,
      )
      await refused(t, 'status=success,Error', 'invalid_request', /"Error"/)
    })

    t.test('session_id finds the calls of one session, of those that the key may see', async (t) => {
      t.same(await ids('period=all&session_id=run%207'), [7])
      t.same(await ids('period=all&scope=account&session_id=run%207', whole), [9, 7])
      t.same(await ids('period=all&status=rejected&session_id=run%207'), [7], 'of the failed ones')
      t.same(await ids('period=all&session_id=run'), [], 'the whole text')
      t.same(await ids('period=today&session_id='), [8, 7], 'empty is no filter')
      t.same(
        (await read('period=today')).data.map(({ session_id }) => session_id),
        [null, 'run 7'],
      )
    })

    t.test('limit is 1 to 200, order is asc or desc, and scope is key or account', async (t) => {
      t.equal((await ids('period=all&limit=3')).length, 3)
      for (const bad of ['0', '201', '-1', '1.5', 'ten', '1e2', '99999999999'])
        await refused(t, `limit=${bad}`, 'invalid_request', /^Parameter limit: must be/)
      await refused(t, 'order=down', 'invalid_request', /order.*desc, asc/)
      await refused(t, 'scope=all', 'invalid_request', /scope.*key, account/)
      t.same(await ids('period=today&nonsense=1&key=sk-x'), [8, 7], 'unknown parameters are ignored')
    })

    t.test('ref finds a call by its request id, however old, and never a foreign one', async (t) => {
      t.same(await ids(`ref=${bookedCall(1).request_id}`), [1])
      for (const window of ['period=30d', 'period=today', `from=2026-03-01&to=2026-03-02`])
        t.same(await ids(`ref=${bookedCall(1).request_id}&${window}`), [1], `${window} hides nothing`)
      await refused(t, `ref=${bookedCall(1).request_id}&period=31d`, 'invalid_request', /period/)
      await refused(t, `ref=${bookedCall(1).request_id}&from=2026-03-01`, 'invalid_request', /together/)
      t.same(await ids(`ref=${bookedCall(9).request_id}`), [], "of the account's other key")
      t.same(await ids(`ref=${bookedCall(9).request_id}&scope=account`, whole), [9])
      t.same(await ids(`ref=${bookedCall(10).request_id}&scope=account`, whole), [], 'of another account')
      t.same(await ids('ref=req_nowhere'), [])
      for (const odd of ["x' OR 1=1 --", '%00', '%5C%27%09%0A%0D%5CN', '%FF%ED%A0%80', '{ref:String}'])
        for (const name of ['ref', 'model', 'error_code'])
          t.same(await ids(`${name}=${odd}&period=all`), [], `${name}=${odd}`)
    })

    t.test('visibility: this key, or with the toggle its whole account, and no agent', async (t) => {
      t.same(await ids('period=today&scope=account', whole), [9, 8, 7])
      t.same(await ids('period=today&scope=account&key_id=key_b', whole), [9])
      t.same(await ids('period=today&scope=account&key_id=key_z', whole), [])
      t.same(await ids('period=today&key_id=key_b', whole), [], 'key_id does not widen the scope')
      t.same(await ids('period=today&key_id=key_a'), [8, 7])
      t.same(
        await ids('period=today', reader('acc_b', 'key_b')),
        [],
        'the key of another account by the same id',
      )
      await refused(t, 'scope=account', 'permission_denied', /whole account/)
      for (const kind of ['employee', 'compute'] as const) {
        const other = reader('acc_a', 'key_a', { kind, accountLogs: true })
        await refused(t, 'scope=account', 'permission_denied', /whole account/, other)
        t.same(await ids('period=today', other), [8, 7])
      }
      for (const query of ['', 'scope=key', 'status=sucess', 'format=csv'])
        await refused(t, query, 'permission_denied', /agent/, reader('acc_a', 'key_a', { kind: 'agent' }))
    })

    t.test('attempts are included unless include says otherwise', async (t) => {
      const row = async (query: string) => (await read(`ref=${bookedCall(6).request_id}${query}`)).data[0]!
      t.same((await row('')).attempts, [attempt])
      t.same((await row('&include=')).attempts, [attempt])
      t.same((await row('&include=in_flight,attempts')).attempts, [attempt])
      t.notOk('attempts' in (await row('&include=none')))
      const { submitted_at: created_at, ...only } = (await read(`ref=${bookedCall(8).request_id}`)).data[0]!
      const { latency_ms, error_code, error_message } = only
      t.same(
        only.attempts,
        [{ seq: 1, created_at, latency_ms, error_code, error_message }],
        'its row says all',
      )
      t.equal(only.attempts?.length, only.attempts_count)
      t.notOk('attempts' in (await row('&include=in_flight')))
      t.same((await read('include=in_flight')).in_flight, [])
      await refused(t, 'include=attempts,everything', 'invalid_request', /include.*"everything"/)
    })

    t.test('pages follow each other in both orders; the cursor freezes window and direction', async (t) => {
      for (const order of ['asc', 'desc']) {
        const seen: number[] = []
        let page = await read(`period=30d&limit=2&order=${order}`)
        const { period_from, period_to } = page
        for (;;) {
          seen.push(...page.data.map((row) => row.id))
          t.match(page, { period_from, period_to })
          t.equal(page.has_more, page.next_cursor !== null)
          if (page.next_cursor === null) break
          page = await read(
            `limit=2&period=today&include=in_flight&cursor=${page.next_cursor}`,
            mine,
            NOW + HOUR_MS,
          )
          t.notOk('in_flight' in page, 'on the first page only')
        }
        t.same(seen, order === 'asc' ? [2, 3, 4, 5, 6, 7, 8] : [8, 7, 6, 5, 4, 3, 2])
      }
    })

    t.test('a cursor that was changed, or is used otherwise, is refused', async (t) => {
      const cursor = (await read('limit=1&order=asc')).next_cursor!
      const [payload = '', signature = ''] = cursor.split('.')
      const fields = JSON.parse(Buffer.from(payload, 'base64url').toString())
      const forged = Buffer.from(JSON.stringify(fields.with(2, 0))).toString('base64url')
      for (const bad of [
        'x',
        payload,
        `${payload}.`,
        `${forged}.${signature}`,
        `${payload}.${signature.slice(1)}A`,
        `${cursor}A`,
        `${cursor}=`,
        'A'.repeat(2000),
      ])
        await refused(t, `cursor=${bad}`, 'invalid_request', /^Parameter cursor: is not a cursor/)
      for (let at = 0; at < cursor.length; at++) {
        const swapped = cursor[at] === 'A' ? 'B' : 'A'
        const changed = cursor.slice(0, at) + swapped + cursor.slice(at + 1)
        await t.rejects(read(`cursor=${changed}`), { code: 'invalid_request' }, `changed at ${at}`)
      }
      await refused(t, `cursor=${cursor}&order=desc`, 'invalid_request', /order.*asc/)
      await refused(t, `cursor=${cursor}`, 'invalid_request', /cursor/, reader('acc_z', 'key_z'))
      await refused(t, `cursor=${cursor}&from=2026-03-01`, 'invalid_request', /to.*together/)
      await refused(t, `cursor=${cursor}&period=year`, 'invalid_request', /period/)
      t.equal((await ids(`cursor=${cursor}&order=asc`)).at(0), 3)
    })

    t.test('while ClickHouse is away: 503', async (t) => {
      await engines.stopEngine('clickhouse')
      await refused(t, '', 'service_unavailable', /call log/)
    })
  })
})

t.test('answers what postgres would', async (t) => {
  // Whatever is asked of the call log, the answer is the one that PostgreSQL's usage rows give: the question is put to them
  // in SQL of its own. Rows come by the way that they come by in service.
  const NOW = Date.UTC(2026, 2, 10, 15, 30, 0, 250)
  const DAY_MS = 24 * 60 * 60 * 1000
  const CURSOR_KEY = Buffer.alloc(32, 7)
  const SEED = 20_260_310
  const ROWS = 900
  const COPIED_ROWS = 600
  const MODELS = ['sonata-large', 'sonata-small', 'étude "n°1"', "it's", 'a\\b']
  const ERROR_CODES = ['upstream_error', 'quota_exceeded', "o'hara"]
  const MAX_PAGES = 4
  const [LIST_RUNS, CSV_RUNS, SUMMARY_RUNS] = [60, 15, 50]

  const COMPARED = [
    ...['id', 'created_at', 'key_id', 'model', 'status', 'error_code', 'input_tokens', 'output_tokens'],
    ...['cached_tokens', 'unit_count', 'unit_type', 'cost', 'request_id'],
  ]

  /** A record of a CSV file, without the quotes. */
  const cellsOf = (line: string): string[] =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
    )

  /** Where each period begins for who asks now. */
  const PERIOD_STARTS = {
    today: Date.parse('2026-03-10T00:00:00Z'),
    '7d': Date.parse('2026-03-03T15:30:00.250Z'),
    '30d': Date.parse('2026-02-08T15:30:00.250Z'),
    this_month: Date.parse('2026-03-01T00:00:00Z'),
    all: 0,
  } as const
  type Period = keyof typeof PERIOD_STARTS
  const PERIODS = Object.keys(PERIOD_STARTS) as Period[]
  const SUMMARY_PERIODS = PERIODS.filter((period) => period !== 'all')

  interface End {
    readonly text: string
    readonly isDay: boolean
    readonly at: number
  }

  const agoMs = fc.integer({ min: -2 * DAY_MS, max: 45 * DAY_MS })
  const day: fc.Arbitrary<End> = agoMs.map((ago) => {
    const text = new Date(NOW - ago).toISOString().slice(0, 10)
    return { text, isDay: true, at: Date.parse(text) }
  })
  const instant: fc.Arbitrary<End> = agoMs.map((ago) => ({
    text: new Date(NOW - ago).toISOString(),
    isDay: false,
    at: NOW - ago,
  }))
  /** Hours east of Greenwich, without milliseconds. */
  const elsewhere: fc.Arbitrary<End> = fc
    .tuple(agoMs, fc.integer({ min: 0, max: 14 }))
    .map(([ago, hours]) => {
      const at = Math.floor((NOW - ago) / 1000) * 1000
      const local = new Date(at + hours * 3_600_000).toISOString().slice(0, 19)
      return { text: `${local}+${String(hours).padStart(2, '0')}:00`, isDay: false, at }
    })
  const end = fc.oneof(day, instant, elsewhere)
  const range = fc.tuple(end, end).filter(([from, to]) => from.at < to.at || (to.isDay && from.at <= to.at))

  interface Window {
    readonly parameters: Readonly<Record<string, string>>
    readonly from: number
    readonly to: number
  }

  const ranged = range.map(
    ([from, to]): Window => ({
      parameters: { from: from.text, to: to.text },
      from: from.at,
      to: to.isDay ? to.at + DAY_MS : to.at,
    }),
  )
  const named = (periods: readonly Period[]) =>
    fc
      .constantFrom(...periods)
      .map((period): Window => ({ parameters: { period }, from: PERIOD_STARTS[period], to: NOW + 1 }))
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

  t.test('the call log answers what PostgreSQL would', async (t) => {
    const bench = await CopyBench.open(t)
    const { sql, callLog, database, account } = bench
    const other = await newAccount(database)
    const [second, foreign] = [
      (await database.keys.create({ accountId: account, name: 'second' })).key.id,
      (await database.keys.create({ accountId: other, name: 'foreign' })).key.id,
    ]
    const owners = [
      [account, bench.keyId],
      [account, bench.keyId],
      [account, second],
      [other, foreign],
    ] as const
    const random = new Random(SEED)
    const rows = Array.from({ length: ROWS }, (_, index) => {
      const [account_id, key_id] = random.pick(owners)
      const status = random.pick(CALL_STATUSES)
      const at = NOW - random.int(-DAY_MS, 42 * DAY_MS)
      const midnight = Math.floor(at / DAY_MS) * DAY_MS
      const unit = random.chance(0.4) ? random.pick(UNIT_TYPES) : null
      return settlement(account_id, {
        key_id,
        status,
        // Many at one instant, and some at the very ends of days.
        created_at: random.pick([at, midnight, midnight - 1, Math.floor(at / 3_600_000) * 3_600_000]),
        model: random.pick(MODELS),
        error_code: status === 'success' || random.chance(0.3) ? null : random.pick(ERROR_CODES),
        unit_type: unit,
        unit_count: unit === null ? null : String(random.int(1, 20)),
        cost: status === 'rejected' ? '0' : String(random.int(0, 10 ** 9)),
        input_tokens: random.int(0, 10 ** 6),
        output_tokens: random.int(0, 10 ** 6),
        cached_tokens: random.int(0, 10 ** 5),
        ...(index % 2 === 0 && { upstream_cost: String(index * 1_234_567) }),
      })
    })
    await database.bookings.book(rows.slice(0, COPIED_ROWS))
    const copier = await bench.newCopier(t)
    await bench.untilCopied()
    await copier.stop()
    await database.bookings.book(rows.slice(COPIED_ROWS))
    bench.booked = ROWS

    const pages = openFreshPages({ callLog, database, bookEnded: async () => {}, isAway: () => false })
    const who = reader(account, bench.keyId, { accountLogs: true })
    const readText = async (query: string): Promise<string> =>
      (
        await receive(
          logs({ callLog: pages, tasks: database.tasks, cursorKey: CURSOR_KEY, now: () => NOW })(
            who,
            request(query),
          ),
        )
      ).text
    const print = (parameters: Readonly<Record<string, string | undefined>>): string =>
      new URLSearchParams(
        Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined),
      ).toString()

    const question = fc.record({
      scope: maybe(fc.constantFrom('key', 'account')),
      keyId: maybe(fc.constantFrom(bench.keyId, second, foreign, 'key_nobody')),
      window: maybe(fc.oneof(ranged, named(PERIODS))),
      models: maybe(fc.subarray([...MODELS, 'nothing'])),
      statuses: maybe(fc.subarray([...CALL_STATUSES])),
      unitTypes: maybe(fc.subarray([...UNIT_TYPES])),
      errorCodes: maybe(fc.subarray([...ERROR_CODES, 'nothing'])),
      ref: fc.oneof(
        { weight: 7, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.nat(ROWS - 1).map((index) => rows[index]!.request_id) },
      ),
      order: maybe(fc.constantFrom('asc' as const, 'desc' as const)),
    })
    type Question = typeof question extends fc.Arbitrary<infer Asked> ? Asked : never

    const parametersOf = (asked: Question): Record<string, string | undefined> => ({
      ...asked.window?.parameters,
      scope: asked.scope,
      key_id: asked.keyId,
      model: asked.models?.join(','),
      status: asked.statuses?.join(','),
      unit_type: asked.unitTypes?.join(','),
      error_code: asked.errorCodes?.join(','),
      ref: asked.ref,
      order: asked.order,
    })

    /** An empty list is none; without a window it is the last 30 days, or all of them for an exact lookup. */
    async function truth(asked: Question) {
      const { from, to } = asked.window ?? { from: asked.ref ? 0 : PERIOD_STARTS['30d'], to: NOW + 1 }
      const listed = (list: readonly string[] | undefined): string[] | null =>
        list === undefined || list.length === 0 ? null : [...list]
      const [models, statuses] = [listed(asked.models), listed(asked.statuses)]
      const [unitTypes, errorCodes] = [listed(asked.unitTypes), listed(asked.errorCodes)]
      const found = await sql<Record<string, string | number | null>[]>`
      SELECT id::float8, key_id, model, status, error_code, input_tokens::int, output_tokens::int, cached_tokens::int,
        unit_count, unit_type, trim_scale(cost * 0.00000001)::text AS cost, request_id,
        to_char(to_timestamp(created_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
      FROM usage_rows AS u
      WHERE account_id = ${account}
        AND (${asked.scope === 'account'} OR key_id = ${bench.keyId})
        AND (${asked.keyId ?? null}::text IS NULL OR key_id = ${asked.keyId ?? null})
        AND u.created_at >= ${from} AND u.created_at < ${to}
        AND (${models}::text[] IS NULL OR model = ANY (${models}::text[]))
        AND (${statuses}::text[] IS NULL OR status = ANY (${statuses}::text[]))
        AND (${unitTypes}::text[] IS NULL OR coalesce(unit_type, 'chat') = ANY (${unitTypes}::text[]))
        AND (${errorCodes}::text[] IS NULL OR error_code = ANY (${errorCodes}::text[]))
        AND (${asked.ref ?? null}::text IS NULL OR request_id = ${asked.ref ?? null})
      ORDER BY u.created_at, id`
      const inOrder = asked.order === 'asc' ? [...found] : found.toReversed()
      return inOrder.map((row) => Object.fromEntries(COMPARED.map((name) => [name, row[name]])))
    }

    /** Reads every page of many questions; `between` runs before each page. */
    async function readPages(t: Test, between: () => Promise<unknown> = async () => {}) {
      let [asked, answered] = [0, 0]
      await fc.assert(
        fc.asyncProperty(question, fc.integer({ min: 1, max: 200 }), async (it, limit) => {
          const expected = await truth(it)
          const found: Record<string, unknown>[] = []
          let query = print({ ...parametersOf(it), limit: String(limit) })
          for (let pages = 1; pages <= MAX_PAGES; pages++) {
            await between()
            const page: LogPage = JSON.parse(await readText(query))
            found.push(...page.data)
            const due = Math.min(pages * limit, expected.length)
            deepEqual({ rows: found.length, more: page.has_more }, { rows: due, more: due < expected.length })
            if (page.next_cursor === null) break
            query = print({ ...parametersOf(it), limit: String(limit), cursor: page.next_cursor })
          }
          const picked = found.map((row) => Object.fromEntries(COMPARED.map((name) => [name, row[name]])))
          deepEqual(picked, expected.slice(0, found.length))
          asked += 1
          answered += found.length > 0 ? 1 : 0
        }),
        { numRuns: LIST_RUNS, seed: SEED },
      )
      t.ok(answered > asked / 3, `${answered} of ${asked} found something`)
    }

    async function readCsv(t: Test, between: () => Promise<unknown> = async () => {}) {
      await fc.assert(
        fc.asyncProperty(question, maybe(fc.integer({ min: 1, max: 300 })), async (it, limit) => {
          const expected = (await truth(it)).slice(0, limit)
          await between()
          const lines = (
            await readText(print({ ...parametersOf(it), format: 'csv', limit: limit?.toString() }))
          ).split('\r\n')
          deepEqual(lines.pop(), '')
          const [names, ...records] = lines.map(cellsOf)
          const picked = records.map((cells) =>
            COMPARED.map((name) => cells[names!.indexOf(name === 'cost' ? 'cost_usd' : name)]),
          )
          deepEqual(
            picked,
            expected.map((row) => COMPARED.map((name) => String(row[name] ?? ''))),
          )
        }),
        { numRuns: CSV_RUNS, seed: SEED },
      )
      t.pass(`${CSV_RUNS} files`)
    }

    const everyCall: CallPageQuery = {
      ...pageOfAll({ to: Date.UTC(2100, 0), order: 'asc', limit: ROWS }),
      accountId: account,
    }
    const listAdded = async () =>
      database.calls.listUncopied(everyCall, await database.calls.readCopiedUpto())
    const readRows = async () => (await pages.findCalls(everyCall)).rows

    t.test('with calls that are booked and not copied', async (t) => {
      await readPages(t)
      await readCsv(t)
      const added = await listAdded()
      t.ok(added.length > 0 && added.length < ROWS - COPIED_ROWS, 'the others belong to the other account')
      t.ok((await callLog.findCall({ accountId: account, keyId: null, id: added[0]!.id })) === null)
    })

    t.test('a walk goes on while calls are copied, and the copied rows are the same', async (t) => {
      const expected = await readRows()
      const uncopied = await listAdded()
      const details: (CallWithDetail | null)[] = []
      for (const { id } of uncopied.slice(0, 20))
        details.push(await pages.findCall({ accountId: account, keyId: null, id }))
      const first = await pages.findCalls({ ...everyCall, limit: 300 })
      copier.start()
      await bench.untilCopied()
      await copier.stop()
      const { created_at, id } = first.rows.at(-1)!
      const rest = await pages.findCalls({ ...everyCall, after: { createdAt: Date.parse(created_at), id } })
      t.strictSame([...first.rows, ...rest.rows], expected)
      t.equal((await listAdded()).length, 0)
      t.strictSame(await readRows(), expected)
      for (const detail of details)
        t.same(await callLog.findCall({ accountId: account, keyId: null, id: detail!.id }), detail)
    })

    t.test('with rows that are copied and not known to be', async (t) => {
      const ids = (await readRows()).map((row) => row.id)
      let reads = 0
      const forget = () => {
        reads += 1
        return sql`UPDATE usage_copy SET copied_upto = ${ids[(reads * 97) % ids.length]!}`
      }
      await readPages(t, forget)
      await readCsv(t, forget)
      await sql`UPDATE usage_copy SET copied_upto = (SELECT max(id) FROM usage_rows)`
    })

    /** By one column of the usage rows. */
    async function sumsBy(column: string, { from, to }: Window, keyId: string | null) {
      const found = await sql`
      SELECT ${sql.unsafe(column)} AS name, count(*)::int AS requests,
        trim_scale(sum(cost) * 0.00000001)::text AS cost, sum(input_tokens)::float8 AS input_tokens,
        sum(output_tokens)::float8 AS output_tokens, sum(cached_tokens)::float8 AS cached_tokens
      FROM usage_rows
      WHERE account_id = ${account} AND (${keyId}::text IS NULL OR key_id = ${keyId})
        AND created_at >= ${from} AND created_at < ${to}
      GROUP BY 1 ORDER BY 1`
      return found
    }

    t.test('sums over any window', async (t) => {
      const windows = fc.oneof(
        ranged,
        named(SUMMARY_PERIODS),
        instant.map(({ text, at }): Window => ({ parameters: { from: text, to: text }, from: at, to: at })),
        day.map(
          ({ text, at }): Window => ({ parameters: { from: text, to: text }, from: at, to: at + DAY_MS }),
        ),
      )
      await fc.assert(
        fc.asyncProperty(windows, fc.boolean(), maybe(fc.constant(second)), async (window, isWide, keyId) => {
          const query = print({
            ...window.parameters,
            ...(isWide && { scope: 'account', key_id: keyId }),
          })
          const found: LogSummary = await jsonOf(logSummary({ callLog, now: () => NOW })(who, request(query)))
          const visible = isWide ? (keyId ?? null) : bench.keyId
          const [whole] = await sumsBy("''", window, visible)
          const none = { requests: 0, cost: '0', input_tokens: 0, output_tokens: 0, cached_tokens: 0 }
          const { name: _, ...total } = whole ?? { name: '', ...none }
          deepEqual(found.total, total)
          const statuses = await sumsBy('status', window, visible)
          const counts = new Map(statuses.map(({ name, requests }) => [name, requests]))
          deepEqual(
            found.status_counts,
            Object.fromEntries(CALL_STATUSES.map((status) => [status, counts.get(status) ?? 0])),
          )
          const days = await sumsBy(
            "to_char(to_timestamp(created_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
            window,
            visible,
          )
          deepEqual(
            found.by_day,
            days.map(({ name: date, requests, cost, input_tokens, output_tokens }) => ({
              date,
              requests,
              cost,
              tokens: input_tokens + output_tokens,
            })),
          )
          const models = await sumsBy('model COLLATE "C"', window, visible)
          deepEqual(
            found.by_model.toSorted((a, b) => (a.model < b.model ? -1 : 1)),
            models
              .map(({ name: model, requests, cost, input_tokens, output_tokens }) => ({
                model,
                requests,
                cost,
                total_tokens: input_tokens + output_tokens,
              }))
              .toSorted((a, b) => (a.model < b.model ? -1 : 1)),
          )
        }),
        { numRuns: SUMMARY_RUNS, seed: SEED },
      )
      t.pass(`${SUMMARY_RUNS} windows`)
    })

    t.test('usage of all customers and of one, by each thing', async (t) => {
      const dayIn = (zone: string) =>
        `to_char(to_timestamp(created_at / 1000.0) AT TIME ZONE '${zone}', 'YYYY-MM-DD')`
      const names = { account: 'account_id', key: 'key_id', model: 'model COLLATE "C"' } as const
      const which = fc.constantFrom('account', 'key', 'model', 'day')
      // Offsets of half hours, and days of 23 and 25 hours.
      const zones = fc.constantFrom('UTC', 'Asia/Kolkata', 'America/New_York')
      const windows = fc.oneof(ranged, named(PERIODS))
      await fc.assert(
        fc.asyncProperty(
          windows,
          fc.constantFrom(null, account, other),
          which,
          zones,
          async (window, only, by, timezone) => {
            const name = sql.unsafe(by === 'day' ? dayIn(timezone) : names[by])
            const found = await callLog.sumUsageByGroup({
              accountId: only,
              by,
              timezone,
              from: window.from,
              to: window.to,
            })
            const booked = await sql`
          SELECT ${name} AS name, count(*)::int AS requests, sum(cost)::bigint AS cost,
            sum(input_tokens)::float8 AS input, sum(output_tokens)::float8 AS output,
            sum(cached_tokens)::float8 AS cached
          FROM usage_rows
          WHERE (${only}::text IS NULL OR account_id = ${only})
            AND created_at >= ${window.from} AND created_at < ${window.to}
          GROUP BY 1 ORDER BY ${by === 'day' ? sql`1` : sql`sum(cost) DESC, 1`}`
            const costs = await callLog.sumCostsByGroup({
              accountId: only,
              by,
              timezone,
              from: window.from,
              to: window.to,
            })
            const paid = await sql`
          SELECT ${name} AS name, count(*)::int AS requests, sum(cost)::bigint AS cost,
            sum(upstream_cost)::bigint AS upstream_cost
          FROM usage_rows
          WHERE (${only}::text IS NULL OR account_id = ${only}) AND upstream_cost IS NOT NULL
            AND created_at >= ${window.from} AND created_at < ${window.to}
          GROUP BY 1 ORDER BY ${by === 'day' ? sql`1` : sql`sum(cost) DESC, 1`}`
            deepEqual(
              costs.map((row) => [
                { account: row.accountId, key: row.keyId, model: row.model, day: row.day }[by],
                ...[row.requests, row.cost, row.upstreamCost],
              ]),
              paid.map((row) => [row.name, row.requests, row.cost, row.upstream_cost]),
            )
            const told = found.map(({ accountId, keyId, model, day: ofDay, channelId: _, ...sums }) => [
              { account: accountId, key: keyId, model, day: ofDay }[by],
              ...[sums.requests, sums.cost, sums.inputTokens, sums.outputTokens, sums.cachedTokens],
            ])
            deepEqual(
              told,
              booked.map((row) => [row.name, row.requests, row.cost, row.input, row.output, row.cached]),
            )
          },
        ),
        { numRuns: SUMMARY_RUNS, seed: SEED },
      )
      t.pass(`${SUMMARY_RUNS} windows`)
    })
  })
})

t.test('walk misses none', async (t) => {
  // Walks over all pages of a long history while rows arrive all the time: none missed, none twice. TOLLGATE_TEST_ALL_REQUESTS=1
  // makes the history a million rows long; that takes minutes, so start this file with node.
  const ALL = process.env.TOLLGATE_TEST_ALL_REQUESTS === '1'
  const HISTORY_ROWS = ALL ? 1_000_000 : 15_000
  const BOUND = { timeout: ALL ? 900_000 : 240_000 }
  /** More than a page looks through at a time. */
  const HISTORY_DAYS = 100
  const PAGE_ROWS = 200
  const NOW = Date.UTC(2026, 2, 10, 15, 30)
  const MINUTE_MS = 60_000
  const DAY_MS = 24 * 60 * MINUTE_MS
  const CURSOR_KEY = Buffer.alloc(32, 7)
  /** So often does the copier insert. */
  const INSERT_GAP_MS = 50
  /** What a client goes back behind its watermark. */
  const REWIND_MS = 5 * MINUTE_MS
  const SYNC_ROUNDS = 6
  const ROWS_PER_INSERT = 20
  const SEED = 20_260_310

  interface Position {
    readonly id: number
    readonly at: number
  }

  const who = reader('acc_a', 'key_a')
  const iso = (at: number): string => new Date(at).toISOString()

  /** In the direction of the query. */
  function isBehind(one: Position, other: Position, query: string): boolean {
    const difference = other.at - one.at || other.id - one.id
    return query.includes('order=asc') ? difference > 0 : difference < 0
  }

  /** Does it again and again until it is stopped. */
  function keepOn(work: () => Promise<void>) {
    let isOver = false
    const loop = async () => {
      while (!isOver) {
        await work()
        await sleep(INSERT_GAP_MS)
      }
    }
    const done = loop()
    return {
      async stop() {
        isOver = true
        await done
      },
    }
  }

  t.test('walks over the call log', BOUND, async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const callLog = openCallLog(engines.clickhouseUrl)
    const client = createClient({ url: engines.clickhouseUrl })
    t.teardown(() => Promise.all([callLog.close(), client.close()]))
    t.beforeEach(async () => {
      await callLog.migrate()
      for (const table of listTables(LIVE_NAMES)) await client.command({ query: `TRUNCATE TABLE ${table}` })
    })

    const read = (query: string, now: number): Promise<LogPage> =>
      jsonOf(
        logs({ callLog, tasks: NO_OPEN_JOBS, cursorKey: CURSOR_KEY, now: () => now })(who, request(query)),
      )
    let ranges = 0
    const insert = (calls: readonly BookedCall[]) =>
      callLog.insertCalls({ token: `walk-${++ranges}`, text: usageText(calls) })

    /** All pages from the first query on; `behind` gets each. */
    async function walk(
      t: Test,
      query: string,
      now: number,
      behind: (page: LogPage) => Promise<void> | void,
    ) {
      const rows: Position[] = []
      const first = await read(`${query}&limit=${PAGE_ROWS}&include=none`, now)
      for (let page = first; ; ) {
        rows.push(...page.data.map(({ id, created_at }) => ({ id, at: Date.parse(created_at) })))
        if (page.period_from !== first.period_from || page.period_to !== first.period_to)
          t.fail(`the window moved to ${page.period_from} ${page.period_to}`)
        await behind(page)
        if (page.next_cursor === null) break
        // The clock has gone on: the cursor holds window and direction as they were.
        page = await read(`limit=${PAGE_ROWS}&include=none&cursor=${page.next_cursor}`, now + DAY_MS)
      }
      const isOrdered = rows.every((row, index) => index === 0 || isBehind(rows[index - 1]!, row, query))
      t.ok(isOrdered, 'each row behind the one before, so none is there twice')
      return { first, ids: new Set(rows.map(({ id }) => id)) }
    }

    /** Mostly in pairs at one instant; and in the midst more at one instant than two pages hold. */
    async function fillHistory(): Promise<number[]> {
      const stepMs = Math.floor(((HISTORY_DAYS - 1) * DAY_MS) / HISTORY_ROWS)
      await client.command({
        query: `
        INSERT INTO calls (id, account_id, key_id, created_at, model, status, request_id)
        SELECT number + 1, if(number % 11 = 0, 'acc_b', 'acc_a'), if(number % 7 = 0, 'key_b', 'key_a'),
          fromUnixTimestamp64Milli(toInt64(${NOW - DAY_MS} - ${stepMs} *
            if(number BETWEEN 6000 AND 6999, 6000, intDiv(number, 2) * 2))),
          'm', 'success', concat('req_', toString(number + 1))
        FROM numbers(${HISTORY_ROWS})`,
      })
      const answer = await client.query({
        query: `SELECT id FROM calls WHERE account_id = 'acc_a' AND key_id = 'key_a'`,
        format: 'JSONCompactEachRow',
      })
      return (await answer.json<[string]>()).map(([id]) => Number(id))
    }

    for (const order of ['asc', 'desc'] as const)
      t.test(`${order}: every row of the window once, in order, whatever arrives`, BOUND, async (t) => {
        const history = await fillHistory()
        const random = new Random(SEED)
        const query = `period=all&order=${order}`
        const arrived = new Set<number>()
        const due = new Set<number>()
        const fresh: Position[] = []
        let nextId = HISTORY_ROWS + 1
        /** Half of them are of now; the others are late, at instants that others have too. */
        const arrive = async () => {
          const lateAt = NOW - random.int(1, HISTORY_DAYS) * DAY_MS
          const calls = Array.from({ length: ROWS_PER_INSERT }, (_, index) => {
            const at = index % 2 === 0 ? NOW + nextId : lateAt
            return bookedCall(nextId++, { created_at: at })
          })
          await insert(calls)
          fresh.push(...calls.map(({ id, created_at }) => ({ id: Number(id), at: created_at })))
          for (const { id } of calls) arrived.add(Number(id))
        }
        const writer = keepOn(arrive)
        const { first, ids } = await walk(t, query, NOW, ({ data }) => {
          const last = data.at(-1)!
          const end = { id: last.id, at: Date.parse(last.created_at) }
          // What is there now, and stands where the walk has not been, must come.
          for (const row of fresh.splice(0)) if (row.at <= NOW && isBehind(end, row, query)) due.add(row.id)
        })
        await writer.stop()
        t.match(first, { period_from: iso(0), period_to: iso(NOW + 1), has_more: true })
        t.ok(arrived.size >= 5 * ROWS_PER_INSERT && due.size > 0, `${arrived.size} rows arrived meanwhile`)
        t.strictSame(
          [...history, ...due].filter((id) => !ids.has(id)),
          [],
          'none missed',
        )
        const known = new Set(history)
        t.strictSame(
          [...ids].filter((id) => !known.has(id) && !arrived.has(id)),
          [],
          'no row of others',
        )
      })

    t.test('incremental sync has every row once, however late it is booked within the rewind', async (t) => {
      const random = new Random(SEED)
      const booked = new Map<number, number>()
      const synced = new Set<number>()
      let [now, nextId] = [NOW, 1]
      let underWay: { at: number; visibleAt: number }[] = []

      /** Time goes on; calls end, and are booked later, in another order than they ended. */
      const goOn = async (ms: number) => {
        now += ms
        for (let count = random.int(0, 60); count > 0; count--) {
          const at = now - random.int(0, ms)
          const lateMs = random.chance(0.8) ? random.int(0, 2_000) : random.int(0, REWIND_MS - MINUTE_MS)
          underWay.push({ at, visibleAt: at + lateMs })
        }
        const due = underWay.filter(({ visibleAt }) => visibleAt <= now)
        underWay = underWay.filter(({ visibleAt }) => visibleAt > now)
        const calls = due
          .toSorted((a, b) => a.visibleAt - b.visibleAt)
          .map(({ at }) => bookedCall(nextId++, { created_at: at }))
        if (calls.length > 0) await insert(calls)
        for (const { id, created_at } of calls) booked.set(Number(id), created_at)
      }

      let previousTo = iso(NOW)
      let doubles = 0
      const sync = async () => {
        const from = iso(Date.parse(previousTo) - REWIND_MS)
        const query = `from=${from}&to=${iso(now)}&order=asc`
        const { first, ids } = await walk(t, query, now, () => goOn(random.int(0, 5_000)))
        previousTo = first.period_to
        for (const id of ids) {
          if (synced.has(id)) doubles += 1
          synced.add(id)
        }
      }
      for (let round = 0; round < SYNC_ROUNDS; round++) {
        await goOn(random.int(1, 3 * MINUTE_MS))
        await sync()
      }
      await goOn(REWIND_MS)
      await sync()
      t.ok(booked.size > 20 * SYNC_ROUNDS && doubles > 0, `${booked.size} rows; ${doubles} came again`)
      const cameBefore = [...booked].filter(([, at]) => at < Date.parse(previousTo)).map(([id]) => id)
      t.strictSame(
        [...synced].toSorted((a, b) => a - b),
        cameBefore.toSorted((a, b) => a - b),
      )
    })
  })
})

t.test('sums and exports', async (t) => {
  // `GET /v1/logs/summary` and the log as CSV: what they say of the calls is what the calls say.
  const NOW = Date.UTC(2026, 2, 10, 15, 30, 0, 250)
  const HOUR_MS = 3_600_000
  const DAY_MS = 24 * HOUR_MS
  const CURSOR_KEY = Buffer.alloc(32, 7)
  const SEED = 20_260_310
  const MODELS = ['sonata-large', 'sonata-small', 'étude, "n°1"']

  /** Calls of two accounts and three keys in the 40 days before now, some of them at the very ends of days. */
  function drawCalls(random: Random): BookedCall[] {
    return Array.from({ length: 400 }, (_, index) => {
      const at = NOW - random.int(0, 40 * DAY_MS)
      const status = random.pick(CALL_STATUSES)
      return bookedCall(index + 1, {
        account_id: index % 7 === 0 ? 'acc_z' : 'acc_a',
        key_id: index % 7 === 0 ? 'key_z' : random.pick(['key_a', 'key_b']),
        created_at: random.chance(0.3) ? Math.floor(at / DAY_MS) * DAY_MS - random.int(0, 1) : at,
        model: random.pick(MODELS),
        status,
        cost: status === 'rejected' ? '0' : String(random.int(0, 10 ** 12)),
        input_tokens: random.int(0, 10 ** 6),
        output_tokens: random.int(0, 10 ** 6),
        cached_tokens: random.int(0, 10 ** 5),
      })
    })
  }

  /** The expected summary, computed from the calls themselves. */
  function summed(calls: readonly BookedCall[]) {
    const sum = (some: readonly BookedCall[], part: (call: BookedCall) => number) =>
      some.reduce((total, call) => total + part(call), 0)
    const costOf = (some: readonly BookedCall[]) =>
      printCredits(some.reduce((total, { cost }) => total + BigInt(cost), 0n))
    const tokensOf = (some: readonly BookedCall[]) =>
      sum(some, (call) => call.input_tokens + call.output_tokens)
    const by = (part: (call: BookedCall) => string) =>
      [...Map.groupBy(calls, part)].sort(([a], [b]) => (a < b ? -1 : 1))
    return {
      total: {
        requests: calls.length,
        cost: costOf(calls),
        input_tokens: sum(calls, (call) => call.input_tokens),
        output_tokens: sum(calls, (call) => call.output_tokens),
        cached_tokens: sum(calls, (call) => call.cached_tokens),
      },
      status_counts: Object.fromEntries(
        CALL_STATUSES.map((status) => [status, sum(calls, (call) => (call.status === status ? 1 : 0))]),
      ),
      by_day: by((call) => new Date(call.created_at).toISOString().slice(0, 10)).map(([date, some]) => ({
        date,
        requests: some.length,
        cost: costOf(some),
        tokens: tokensOf(some),
      })),
      by_model: by((call) => call.model)
        .map(([model, some]) => ({
          model,
          requests: some.length,
          cost: costOf(some),
          total_tokens: tokensOf(some),
        }))
        .sort((a, b) => Number(b.cost) - Number(a.cost)),
    }
  }

  t.test('the log summed up and exported', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const callLog = callLogAt(t, engines.clickhouseUrl)
    const random = new Random(SEED)
    const calls = drawCalls(random)
    await callLog.insertCalls({ token: 'drawn', text: usageText(calls) })
    const mine = reader('acc_a', 'key_a')
    const whole = reader('acc_a', 'key_a', { accountLogs: true })

    const summarize = (log: CallLog, now: () => number = () => NOW) => {
      const handler = logSummary({ callLog: log, now })
      return async (query: string, who: Reader = mine): Promise<LogSummary> =>
        summarySchema.parse(await jsonOf(handler(who, request(query))))
    }

    t.test('a summary says what the calls of its window say, wherever the window ends', async (t) => {
      const ask = summarize(callLog)
      for (let round = 0; round < 12; round++) {
        const isWhole = random.chance(0.5)
        const [a, b] = [random.int(0, 41 * DAY_MS), random.int(0, 41 * DAY_MS)].map((ago) =>
          isWhole ? Math.floor((NOW - ago) / DAY_MS) * DAY_MS : NOW - ago,
        ) as [number, number]
        const [from, to] = [Math.min(a, b), Math.max(a, b)]
        const query = `from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`
        const inWindow = calls.filter(({ created_at }) => created_at >= from && created_at < to)
        const ofAccount = inWindow.filter(({ account_id }) => account_id === 'acc_a')
        const ofKey = (id: string) => ofAccount.filter(({ key_id }) => key_id === id)
        t.match(await ask(query), { scope: 'key', ...summed(ofKey('key_a')) }, query)
        t.match(await ask(`${query}&scope=account`, whole), { scope: 'account', ...summed(ofAccount) })
        t.match(await ask(`${query}&scope=account&key_id=key_b`, whole), summed(ofKey('key_b')))
      }
    })

    t.test('its window is the one asked for, its days those of UTC', async (t) => {
      const ask = summarize(callLog)
      const today = await ask('period=today')
      t.match(today, {
        object: 'logs.summary',
        currency: 'points',
        period_from: '2026-03-10T00:00:00.000Z',
        period_to: '2026-03-10T15:30:00.251Z',
      })
      t.ok(today.by_day.every(({ date }) => date === '2026-03-10'))
      t.match(await ask(''), { period_from: '2026-02-08T15:30:00.250Z' }, '30d is the default')
      t.match(await ask('from=2026-03-01&to=2026-03-01&period=all'), {
        period_from: '2026-03-01T00:00:00.000Z',
        period_to: '2026-03-02T00:00:00.000Z',
      })
      t.match(await ask('from=2025-01-01&to=2025-12-31'), { total: { requests: Number } }, '365 days')
      t.match(
        await ask('scope=key&key_id=key_b'),
        { total: { requests: 0 } },
        'key_id does not widen the scope',
      )
      t.match(await ask('model=&status=&ref='), { scope: 'key' }, 'an empty value is no filter')
    })

    t.test('what it does not take is refused', async (t) => {
      const ask = summarize(callLog)
      const refused = (query: string, message: RegExp, code = 'invalid_request', who = mine) =>
        t.rejects(ask(query, who), { name: 'Failure', code, message }, query)
      for (const filter of [
        'model=x',
        'status=success',
        'unit_type=chat',
        'error_code=x',
        'ref=req_x',
        'session_id=x',
      ])
        await refused(filter, new RegExp(`^Parameter ${filter.split('=')[0]}: `))
      await refused('period=all', /^Parameter period: /)
      await refused('period=year', /^Parameter period: /)
      await refused('from=2024-01-01&to=2024-12-31', /365 days/)
      await refused('from=2025-01-01&to=2026-01-01T00:00:00.001Z', /365 days/)
      await refused('from=2026-01-01', /together/)
      await refused('to=2026-01-01', /together/)
      await refused('from=2026-01-02&to=2026-01-01', /after/)
      await refused('scope=all', /scope/)
      await refused('scope=account', /whole account/, 'permission_denied')
      await refused('ref=x', /agent/, 'permission_denied', reader('acc_a', 'key_a', { kind: 'agent' }))
    })

    t.test('an answer is cached for a minute, for its own key alone', async (t) => {
      let [asked, now] = [0, NOW]
      const counting: CallLog = {
        ...callLog,
        summarizeCalls(query, signal) {
          asked++
          return callLog.summarizeCalls(query, signal)
        },
      }
      const ask = summarize(counting, () => now)
      const first = await ask('period=7d')
      now += LOG_SUMMARY_CACHE_SECONDS * 1000 - 1
      t.same(await Promise.all([ask('period=7d'), ask('period=7d&scope=key')]), [first, first])
      t.equal(asked, 1)
      await ask('period=7d', whole)
      t.equal(asked, 1, 'of the same key')
      await ask('period=7d&scope=account', whole)
      await ask('period=7d', reader('acc_a', 'key_b'))
      await ask('period=7d', reader('acc_z', 'key_a'))
      await ask('period=30d')
      t.equal(asked, 5, 'each is its own')
      await t.rejects(ask('period=7d&scope=account'), { code: 'permission_denied' })
      now += 2
      t.not((await ask('period=7d')).period_to, first.period_to)
      t.equal(asked, 6, 'a minute later')
    })

    const csv = (
      query: string,
      {
        who = mine,
        accept = '',
        onHead,
      }: { who?: Reader; accept?: string; onHead?: (head: Received) => void } = {},
    ) => {
      const handler = logs({ callLog, tasks: NO_OPEN_JOBS, cursorKey: CURSOR_KEY, now: () => NOW })
      const header = (name: string) => (name === 'accept' ? accept : '')
      return receive(handler(who, request(query, { header })), onHead)
    }
    const records = (text: string) => text.split('\r\n').slice(1, -1)
    const first = (record: string) => Number(record.split(',', 1)[0])

    t.test('CSV is what is asked for by name, or preferred', async (t) => {
      const isCsv = async (query: string, accept: string) =>
        (await csv(query, { accept })).headers.get('content-type') === 'text/csv; charset=utf-8'
      for (const accept of [
        'text/csv',
        'TEXT/CSV;charset=utf-8',
        'text/csv, */*;q=0.1',
        'application/json;q=0.5,text/*',
      ])
        t.ok(await isCsv('', accept), accept)
      for (const accept of [
        '',
        '*/*',
        'application/json',
        'application/json, text/csv',
        'text/csv;q=0',
        'text/html',
      ])
        t.notOk(await isCsv('', accept), accept)
      t.ok(await isCsv('format=csv', 'application/json'))
      t.notOk(await isCsv('format=json', 'text/csv'))
    })

    t.test('it has the same calls in the same order, with the same filters', async (t) => {
      const json = async (query: string) =>
        JSON.parse((await csv(`${query}&limit=200&format=json`, { who: whole })).text).data as {
          id: number
        }[]
      for (const query of [
        'order=asc',
        'status=error,rejected',
        'scope=account&period=7d',
        `model=${MODELS[0]}`,
        'ref=nowhere',
      ]) {
        const { text, headers } = await csv(`${query}&format=csv`, { who: whole })
        t.same(
          records(text).map(first),
          (await json(query)).map(({ id }) => id),
          query,
        )
        t.notOk(headers.has('x-truncated'))
      }
      await refusedAsCsv(t, 'status=sucess', 'invalid_request')
      await refusedAsCsv(t, 'limit=0', 'invalid_request')
      await refusedAsCsv(t, `limit=${LOG_CSV_MAX_ROWS + 1}`, 'invalid_request')
      await refusedAsCsv(t, 'scope=account', 'permission_denied')
    })
    const refusedAsCsv = (t: Test, query: string, code: string) =>
      t.rejects(csv(`${query}&format=csv`), { name: 'Failure', code }, query)

    t.test('a cell is what it was, and no spreadsheet takes it for a formula', async (t) => {
      const odd = bookedCall(1_001, {
        account_id: 'acc_odd',
        key_name: '=HYPERLINK("x")',
        model: '@étude, "n°1"',
        status: 'error',
        error_code: '-upstream_error',
        error_message: 'two\nlines',
        cost: '1941000000',
        unit_count: '-1.5',
        created_at: NOW,
        submitted_at: NOW - 40,
      })
      await callLog.insertCalls({ token: 'odd', text: usageText([odd]) })
      const { text, headers } = await csv('format=csv', { who: reader('acc_odd', 'key_a') })
      t.equal(
        text,
        'id,created_at,submitted_at,key_id,key_name,key_prefix,model,status,error_code,error_message,input_tokens,' +
          'output_tokens,cached_tokens,cache_write_tokens,reasoning_tokens,server_tool_calls,unit_count,unit_type,' +
          'cost_usd,latency_ms,request_id,task_id,result_urls,result_expires_at,attempts_count,call_count,session_id\r\n' +
          `1001,2026-03-10T15:30:00.250Z,2026-03-10T15:30:00.210Z,key_a,"'=HYPERLINK(""x"")",sk-tollgate-0123abcd,` +
          `"'@étude, ""n°1""",error,'-upstream_error,"two\nlines",10,20,0,0,0,0,-1.5,,19.41,40,${odd.request_id},,,,1,1,\r\n`,
      )
      t.match(headers.get('content-disposition'), 'filename="logs.csv"')
    })

    t.test('10,000 rows, then it says that there are more, and where', async (t) => {
      const many = Array.from({ length: LOG_CSV_MAX_ROWS + 7 }, (_, index) =>
        bookedCall(2_000 + index, { account_id: 'acc_many', created_at: NOW - 50_000 + (index >> 2) }),
      )
      await callLog.insertCalls({ token: 'many', text: usageText(many) })
      const who = reader('acc_many', 'key_a')
      let isPaused = false
      const { text, headers } = await csv('format=csv&order=asc', {
        who,
        onHead(head) {
          head.flow!.pause()
          isPaused = true
          setTimeout(() => {
            t.ok(head.text.length < 100_000, 'no more is read than the client takes')
            isPaused = false
            head.flow!.resume()
          }, 50)
        },
      })
      t.notOk(isPaused, 'it went on when the client did')
      t.equal(headers.get('x-truncated'), 'true')
      const rest = await csv(`format=csv&cursor=${headers.get('x-next-cursor')}`, { who })
      t.notOk(rest.headers.has('x-truncated'))
      t.equal(records(text).length, LOG_CSV_MAX_ROWS)
      t.same(
        [...records(text), ...records(rest.text)].map(first),
        many.map(({ id }) => Number(id)),
        'each row once, in order',
      )
    })

    t.test('while ClickHouse is away: 503, no part of a file', async (t) => {
      await engines.stopEngine('clickhouse')
      await t.rejects(csv('format=csv'), { code: 'service_unavailable' })
      await t.rejects(summarize(callLog)(''), { code: 'service_unavailable' })
    })
  })
})

t.test('jobs in flight are listed', async (t) => {
  // Unfinished asynchronous jobs, on the first page, for keys that may see them.
  const CURSOR_KEY = Buffer.alloc(32, 7)

  t.test('jobs in flight', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const { database, openAnother } = await startDatabase(t)
    const callLog = callLogAt(t, engines.clickhouseUrl)

    const newAccount = async () => {
      const { account } = await database.accounts.create({ name: 'test', credit: 1000n * ONE_CREDIT })
      const key = async (name: string) => (await database.keys.create({ accountId: account.id, name })).key
      return { id: account.id, film: await key('film'), sound: await key('sound') }
    }
    const mine = await newAccount()
    const other = await newAccount()
    let instant = Date.parse('2026-03-10T12:00:00.000Z')
    const newTask = (more: Partial<NewTask> & { keyId: string }, accountId = mine.id) => {
      instant += 1000
      return created(database, newVideo(accountId, { submittedAt: instant, ...more }))
    }
    const film = await newTask({
      keyId: mine.film.id,
      hold: 12n * ONE_CREDIT + 1n,
      sessionId: 'a film',
    })
    const song = await newTask({
      id: newId('mus'),
      kind: 'music',
      model: 'songs',
      keyId: mine.sound.id,
    })
    await newTask({ keyId: mine.film.id, isAwaited: true })
    await newTask({ keyId: other.film.id }, other.id)
    const ended = await newTask({ keyId: mine.film.id })
    const claimed = await database.tasks.applyTransition(move(ended, 'claimed'))
    await database.tasks.applyTransition(move(claimed.task, 'failed'))

    const who = reader(mine.id, mine.film.id)
    const whole = reader(mine.id, mine.film.id, { accountLogs: true })
    const read = async (query: string, from: Reader = who, { tasks } = database) => {
      const handler = logs({ callLog, tasks, cursorKey: CURSOR_KEY })
      return logPage.parse(await jsonOf(handler(from, request(query))))
    }
    const ids = (page: LogPage) => page.in_flight?.map(({ task_id }) => task_id)

    await t.test('a job is listed with what is known of it', async (t) => {
      t.same((await read('include=in_flight')).in_flight, [
        {
          object: 'log.in_flight',
          task_id: film.id,
          request_id: film.requestId,
          key_id: mine.film.id,
          key_name: 'film',
          key_prefix: mine.film.prefix,
          model: 'motion-large',
          unit_type: 'video',
          status: 'queued',
          estimate: '12.00000001',
          submitted_at: '2026-03-10T12:00:01.000Z',
        },
      ])
      t.notOk('in_flight' in (await read('')), 'not unless it is asked for')
      t.notOk('in_flight' in (await read('include=none')))
    })

    await t.test('neither what a client waits for, nor what has ended, nor another account’s', async (t) => {
      t.same(
        ids(await read('scope=account&include=in_flight', whole)),
        [song.id, film.id],
        'the newest first',
      )
      t.same(ids(await read('include=attempts,in_flight')), [film.id], 'of this key')
      t.same(ids(await read(`scope=account&key_id=${mine.sound.id}&include=in_flight`, whole)), [song.id])
      t.same(ids(await read(`key_id=${mine.sound.id}&include=in_flight`)), [], 'no other key’s')
      await t.rejects(read('scope=account&include=in_flight'), { code: 'permission_denied' })
    })

    await t.test('the filters that an open job has narrow them; the window does not', async (t) => {
      const find = async (query: string) => ids(await read(`scope=account&include=in_flight&${query}`, whole))
      t.same(await find('model=songs'), [song.id])
      t.same(await find('model=nothing'), [])
      t.same(await find('unit_type=video,audio'), [film.id])
      t.same(await find('unit_type=chat'), [])
      t.same(await find(`ref=${song.id}`), [song.id])
      t.same(await find(`ref=${film.requestId}`), [film.id])
      t.same(await find('from=2020-01-01&to=2020-01-02'), [song.id, film.id])
      t.same(await find('session_id=a%20film'), [film.id])
      t.same(await find('status=error'), [], 'it has no status of a row yet')
      t.same(await find('error_code=upstream_error'), [])
      t.same(await find('status=&error_code='), [song.id, film.id], 'an empty value is no filter')
    })

    await t.test('while PostgreSQL is away the page is answered without them', async (t) => {
      const away = await openAnother()
      await away.close()
      const page = await read('include=in_flight', who, away)
      t.notOk('in_flight' in page, 'no list is not an empty list')
      t.same(page.data, [])
    })

    await t.test('at most a hundred', async (t) => {
      const crowd = await newAccount()
      for (let left = IN_FLIGHT_MAX_JOBS + 1; left > 0; left--)
        await newTask({ keyId: crowd.film.id }, crowd.id)
      const listed = ids(await read('include=in_flight', reader(crowd.id, crowd.film.id)))
      t.equal(listed?.length, IN_FLIGHT_MAX_JOBS)
    })
  })
})

t.test('columns are those of the tables', async (t) => {
  t.test('usage rows have the columns that are declared, with their types', async (t) => {
    const { sql } = await startDatabase(t)
    const rows = await sql<{ name: string; type: string }[]>`
    SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
    WHERE attrelid = 'usage_rows'::regclass AND attnum > 0 AND NOT attisdropped`
    t.same(
      Object.fromEntries(rows.map(({ name, type }) => [name, type])),
      Object.fromEntries(BOOKED_COLUMNS.map((name) => [name, findColumn(name).postgres])),
    )
  })

  t.test('the call log has the columns that are declared, with their types', async (t) => {
    const { clickhouseUrl } = await startEngines(t, { only: ['clickhouse'] })
    const client = connect(clickhouseUrl)
    t.teardown(() => client.close())
    await migrateCallLog(client)
    const columnsOf = async (table: string) => {
      const answer = await client.query({
        query: `SELECT name, type, default_expression AS made FROM system.columns
        WHERE database = currentDatabase() AND table = {table:String}`,
        query_params: { table },
        format: 'JSONEachRow',
      })
      return answer.json<{ name: string; type: string; made: string }>()
    }
    const typesOf = (columns: Awaited<ReturnType<typeof columnsOf>>) =>
      Object.fromEntries(columns.map(({ name, type }) => [name, type]))
    const declared = Object.fromEntries(COPIED_COLUMNS.map((name) => [name, findColumn(name).clickhouse]))
    t.same(typesOf(await columnsOf('calls')), declared)

    const failed = await columnsOf('calls_failed')
    const { detail: _, upstream_cost: __, ...kept } = declared
    t.same(typesOf(failed), { ...kept, page_row: 'String' }, 'failed calls lack what only the detail shows')
    const plain = (expression: string) => expression.replaceAll(/\s/g, '')
    t.equal(plain(failed.find(({ name }) => name === 'page_row')!.made), plain(STORED_PAGE_EXPRESSION))
  })
})
