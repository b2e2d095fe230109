import t from 'tap'
import { z } from 'zod'
import { statementsTo } from '../../bench/logs/engines/clickhouse-statements.ts'
import { rowsSql } from '../../bench/logs/rows/generator.ts'
import { END_MS, makeAccounts, START_MS } from '../../bench/logs/rows/population.ts'
import { attemptRow, CALL_STATUSES, UNIT_TYPES } from '../../schemas/call-log/row.ts'
import { readDetail } from '../../src/core/call-log/detail-text.ts'
import { readPriceTerms } from '../../src/core/pricing/terms.ts'
import { startEngines } from '../support/engines.ts'

const TOTAL = 1_000_000
const ROWS = 20_000
const LOOKED_AT = 400
const DISORDER_MS = 1_500
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID_TIME_CHARS = 10

interface Row {
  readonly id: string
  readonly account_id: string
  readonly request_id: string
  readonly task_id: string
  readonly created_ms: string
  readonly submitted_ms: string
  readonly status: (typeof CALL_STATUSES)[number]
  readonly error_code: string
  readonly unit_type: string
  readonly attempts: string
  readonly attempts_count: number
  readonly detail: string
}

const instantOf = (ulid: string): number =>
  [...ulid.slice(0, ULID_TIME_CHARS)].reduce((ms, digit) => ms * 32 + CROCKFORD.indexOf(digit), 0)

t.test('the rows of the bench', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
  const { rows } = statementsTo(engines.clickhouseUrl)
  const accounts = makeAccounts(1)
  const sql = (from: number, to: number) =>
    rowsSql({ seed: 1, accounts, total: TOTAL, from, to, before: END_MS })
  const columns = `id, account_id, request_id, task_id, status, error_code, unit_type, attempts, attempts_count, detail,
    toUnixTimestamp64Milli(created_at) AS created_ms, toUnixTimestamp64Milli(submitted_at) AS submitted_ms`
  const select = (from: number, to: number) =>
    rows<Row>(`SELECT ${columns} FROM (${sql(from, to)}) ORDER BY id`)

  const some = await select(0, LOOKED_AT)
  t.same(
    some.map(({ id }) => Number(id)),
    Array.from({ length: LOOKED_AT }, (_, i) => i + 1),
  )

  t.test('are the same whatever part of them is made', async (t) => {
    t.equal(JSON.stringify(await select(100, 120)), JSON.stringify(some.slice(100, 120)))
  })

  t.test('end in the order of their numbers, but for some disorder, within the two years', async (t) => {
    const last = await select(TOTAL - LOOKED_AT, TOTAL)
    for (const [offset, list] of [
      [0, some],
      [TOTAL - LOOKED_AT, last],
    ] as const)
      for (const [i, row] of list.entries()) {
        const even = START_MS + Math.floor(((offset + i) * (END_MS - START_MS)) / TOTAL)
        const created = Number(row.created_ms)
        if (created < even || created >= even + DISORDER_MS || created >= END_MS)
          t.fail(`row ${row.id} ends at ${created}, not about ${even}`)
      }
    t.equal(last.at(-1)!.id, String(TOTAL))
  })

  t.test('have ids that tell when the call began', async (t) => {
    for (const { request_id, submitted_ms, task_id } of some) {
      if (!/^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(request_id)) t.fail(`no request id: ${request_id}`)
      if (instantOf(request_id.slice(4)) !== Number(submitted_ms))
        t.fail(`${request_id} is not of ${submitted_ms}`)
      if (task_id !== '' && instantOf(task_id.slice(4)) !== Number(submitted_ms))
        t.fail(`${task_id}: another time`)
    }
    t.equal(new Set(some.map(({ request_id }) => request_id)).size, LOOKED_AT)
    t.ok(some.some(({ task_id }) => task_id !== ''))
  })

  t.test('have texts that the service can read', async (t) => {
    for (const row of some) {
      t.ok(CALL_STATUSES.includes(row.status))
      t.ok(row.unit_type === '' || (UNIT_TYPES as readonly string[]).includes(row.unit_type))
      const detail = readDetail(row.detail)
      t.same(detail, JSON.parse(row.detail), 'nothing in it is unknown')
      t.ok(detail.prices === undefined || readPriceTerms(detail.prices) !== null)
      const attempts = row.attempts === '' ? [] : z.array(attemptRow).parse(JSON.parse(row.attempts))
      t.ok(attempts.length === 0 || attempts.length === row.attempts_count)
    }
  })

  t.test('are skewed as they are to be', async (t) => {
    const [shares] = await rows<Record<'largest' | 'success' | 'media', number>>(`
      SELECT countIf(account_id = '${accounts[0]!.id}') / count() AS largest,
             countIf(status = 'success') / count() AS success, countIf(unit_type != '') / count() AS media
      FROM (${sql(0, ROWS)})`)
    const near = (value: number, wanted: number) => Math.abs(value - wanted) < 0.01
    t.ok(near(shares!.largest, 0.1), `largest ${shares!.largest}`)
    t.ok(near(shares!.success, 0.94), `success ${shares!.success}`)
    t.ok(near(shares!.media, 0.07), `media ${shares!.media}`)
  })
})
