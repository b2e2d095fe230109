/**
 * Whatever is asked of the call log, the answer is the one that PostgreSQL's usage rows give: the question is put to them
 * in SQL of its own. Rows come by the way that they come by in service.
 */
import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { LogPage } from '../../../schemas/call-log/query.ts'
import { CALL_STATUSES, UNIT_TYPES } from '../../../schemas/call-log/row.ts'
import type { LogSummary } from '../../../schemas/call-log/summary.ts'
import { Random } from '../../simulation/random.ts'
import { newAccount, settlement } from '../../src/postgres/support.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { logSummary, logs, reader, receive, request } from './support.ts'
import { CopyBench } from './usage-copy-support.ts'

const NOW = Date.UTC(2026, 2, 10, 15, 30, 0, 250)
const DAY_MS = 24 * 60 * 60 * 1000
const CURSOR_KEY = Buffer.alloc(32, 7)
const SEED = 20_260_310
const ROWS = 900
const MODELS = ['sonata-large', 'sonata-small', 'étude "n°1"', "it's", 'a\\b']
const ERROR_CODES = ['upstream_error', 'quota_exceeded', "o'hara"]
const MAX_PAGES = 4
const [LIST_RUNS, CSV_RUNS, SUMMARY_RUNS] = [90, 25, 50]

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
const elsewhere: fc.Arbitrary<End> = fc.tuple(agoMs, fc.integer({ min: 0, max: 14 })).map(([ago, hours]) => {
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
  await database.bookings.book(rows)
  bench.booked = ROWS
  await bench.newCopier(t)
  await bench.untilCopied()

  const who = reader(account, bench.keyId, { accountLogs: true })
  const readText = async (query: string): Promise<string> =>
    (
      await receive(
        logs({ callLog, tasks: database.tasks, cursorKey: CURSOR_KEY, now: () => NOW })(who, request(query)),
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

  t.test('every page of every question', async (t) => {
    let [asked, answered] = [0, 0]
    await fc.assert(
      fc.asyncProperty(question, fc.integer({ min: 1, max: 200 }), async (it, limit) => {
        const expected = await truth(it)
        const found: Record<string, unknown>[] = []
        let query = print({ ...parametersOf(it), limit: String(limit) })
        for (let pages = 1; pages <= MAX_PAGES; pages++) {
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
  })

  t.test('the same rows as CSV', async (t) => {
    await fc.assert(
      fc.asyncProperty(question, maybe(fc.integer({ min: 1, max: 300 })), async (it, limit) => {
        const expected = (await truth(it)).slice(0, limit)
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
    const dayOf = "to_char(to_timestamp(created_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
    const names = { account: 'account_id', key: 'key_id', model: 'model COLLATE "C"', day: dayOf } as const
    const which = fc.constantFrom(...(Object.keys(names) as (keyof typeof names)[]))
    const windows = fc.oneof(ranged, named(PERIODS))
    await fc.assert(
      fc.asyncProperty(windows, fc.constantFrom(null, account, other), which, async (window, only, by) => {
        const found = await callLog.usageBy({ accountId: only, by, from: window.from, to: window.to })
        const booked = await sql`
          SELECT ${sql.unsafe(names[by])} AS name, count(*)::int AS requests, sum(cost)::bigint AS cost,
            sum(input_tokens)::float8 AS input, sum(output_tokens)::float8 AS output,
            sum(cached_tokens)::float8 AS cached
          FROM usage_rows
          WHERE (${only}::text IS NULL OR account_id = ${only})
            AND created_at >= ${window.from} AND created_at < ${window.to}
          GROUP BY 1 ORDER BY ${by === 'day' ? sql`1` : sql`sum(cost) DESC, 1`}`
        const costs = await callLog.costsBy({ accountId: only, by, from: window.from, to: window.to })
        const paid = await sql`
          SELECT ${sql.unsafe(names[by])} AS name, count(*)::int AS requests, sum(cost)::bigint AS cost,
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
      }),
      { numRuns: SUMMARY_RUNS, seed: SEED },
    )
    t.pass(`${SUMMARY_RUNS} windows`)
  })
})
