/**
 * Refusals are counted each, and have a row each; where rows are shared, those of one key beyond 600 a minute are bounded,
 * and list the ids of their calls.
 */

import t from 'tap'
import { MAX_SHARED_CALLS, OWN_ROWS_PER_MINUTE, RefusalLog } from '../../pipelines/calls/refusals.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import { DEFAULTS } from '../../src/core/call-log/settlement.ts'

const MINUTE_MS = 60_000
const REFUSED = {
  ...DEFAULTS,
  key_id: 'key_a',
  model: 'sonata',
  error_code: 'quota_exceeded',
  status: 'rejected',
}

/** A clock that the test moves, and what was written. */
function openLog(areShared = true) {
  const rows: Settlement[] = []
  const timers: { at: number; work: () => void }[] = []
  let now = 1_000_000
  let number = 0
  const log = new RefusalLog({
    write: (row) => void rows.push(row),
    areShared: () => areShared,
    isModel: (name) => name === 'sonata' || name === 'etude',
    later: (work, ms) => void timers.push({ at: now + ms, work }),
    now: () => now,
  })
  return {
    rows,
    log,
    refuse(count: number, more: Partial<Settlement> = {}) {
      for (let i = 0; i < count; i++)
        log.record({
          ...REFUSED,
          request_id: `req_01J8Z3N4V9${String(number++).padStart(16, '0')}`,
          created_at: now,
          ...more,
        } as Settlement)
    },
    wait(ms: number) {
      now += ms
      for (const timer of timers.splice(0)) timer.at <= now ? timer.work() : timers.push(timer)
    },
    counted: () => rows.reduce((sum, { call_count }) => sum + call_count, 0),
  }
}

t.test('the first 600 of a minute have a row each, the others share one', async (t) => {
  const { rows, refuse, wait, counted } = openLog()
  refuse(OWN_ROWS_PER_MINUTE + 1)
  t.equal(rows.length, OWN_ROWS_PER_MINUTE)
  t.ok(rows.every((row) => row.call_count === 1))
  refuse(399)
  wait(1000)
  t.equal(rows.length, OWN_ROWS_PER_MINUTE + 1)
  t.match(rows.at(-1), { key_id: 'key_a', model: 'sonata', call_count: 400, created_at: 1_001_000 })
  t.match(rows.at(-1)?.request_id, /0600$/)
  t.equal(counted(), 1000)
})

t.test('unless the installation shares them, each has its own row', async (t) => {
  const { rows, refuse, wait } = openLog(false)
  refuse(3 * OWN_ROWS_PER_MINUTE)
  t.equal(rows.length, 3 * OWN_ROWS_PER_MINUTE)
  wait(MINUTE_MS)
  t.equal(rows.length, 3 * OWN_ROWS_PER_MINUTE)
  t.ok(rows.every((row) => row.call_count === 1))
})

t.test('a shared row lists each of its calls, and is written when the list is long', async (t) => {
  const { rows, refuse, log } = openLog()
  refuse(OWN_ROWS_PER_MINUTE + 2 * MAX_SHARED_CALLS, { detail: '{"endpoint":"/v1/x"}' })
  t.equal(rows.length, OWN_ROWS_PER_MINUTE + 2, 'at once')
  refuse(3)
  refuse(1, { model: 'etude', detail: '{"endpoint":"/v1/x"}' })
  log.flush()
  const shared = rows.slice(OWN_ROWS_PER_MINUTE).map(({ detail }) => JSON.parse(detail ?? '{}'))
  t.match(shared[0], { endpoint: '/v1/x' })
  const ids = shared.map(({ shared_ids = '' }) => shared_ids.split(' '))
  t.same(
    ids.map(({ length }) => length),
    [MAX_SHARED_CALLS, MAX_SHARED_CALLS, 3, 1],
  )
  t.equal(ids[0][0], String(OWN_ROWS_PER_MINUTE).padStart(16, '0'))
  t.equal(new Set(ids.flat()).size, 2 * MAX_SHARED_CALLS + 4)
  t.same(shared[3], { endpoint: '/v1/x' }, 'one call alone has its id in its row')
})

t.test('key, model and reason have separate rows, names that clients make up have none', async (t) => {
  const { rows, refuse, log } = openLog()
  refuse(OWN_ROWS_PER_MINUTE)
  refuse(2)
  refuse(3, { model: 'etude' })
  refuse(4, { error_code: 'rate_limit_exceeded' })
  for (let i = 0; i < 50; i++) refuse(1, { model: `made-up-${i}`, error_code: 'model_not_found' })
  refuse(5, { key_id: 'key_b' })
  log.flush()
  t.same(
    rows.slice(OWN_ROWS_PER_MINUTE + 5).map((row) => [row.model, row.error_code, row.call_count]),
    [
      ['sonata', 'quota_exceeded', 2],
      ['etude', 'quota_exceeded', 3],
      ['sonata', 'rate_limit_exceeded', 4],
      ['', 'model_not_found', 50],
    ],
  )
  log.flush()
  t.equal(rows.length, OWN_ROWS_PER_MINUTE + 9, 'each once')
})

t.test('refusals that go on for a minute leave few rows more, and none is lost', async (t) => {
  const { rows, refuse, wait, counted } = openLog()
  for (let second = 0; second < 60; second++) {
    refuse(1000)
    wait(1000)
  }
  const inFirst = rows.length
  t.ok(inFirst <= OWN_ROWS_PER_MINUTE + 60, `${inFirst} rows`)
  wait(MINUTE_MS)
  t.equal(counted(), 60_000)
  refuse(OWN_ROWS_PER_MINUTE)
  t.equal(counted(), 60_000 + OWN_ROWS_PER_MINUTE, 'the next minute begins with a row for each')
  t.equal(new Set(rows.map(({ request_id }) => request_id)).size, rows.length)
})

t.test('a clock that is set back by an hour begins another minute', async (t) => {
  const { rows, refuse, wait } = openLog()
  refuse(OWN_ROWS_PER_MINUTE)
  wait(-60 * MINUTE_MS)
  refuse(1)
  t.equal(rows.length, OWN_ROWS_PER_MINUTE + 1, 'its first refusal has a row')
})
