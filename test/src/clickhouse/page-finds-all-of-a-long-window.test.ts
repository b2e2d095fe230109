/** A page of years is looked for in steps; it is the page all the same. */
import t from 'tap'
import type { CallPageQuery, CallPosition } from '../../../src/clickhouse/pages/query.ts'
import { pageSteps } from '../../../src/clickhouse/pages/steps.ts'
import { withSharedIds } from '../../../src/core/call-log/shared-ids.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { type BookedCall, usageText } from '../../support/usage-text.ts'
import { bookedCall, pageOfAll } from './support.ts'

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
          const steps = pageSteps({ ...everything, from, to, after, order }, NOW)
          const inTime = order === 'asc' ? steps : steps.toReversed()
          t.equal(inTime[0]?.from, from)
          t.equal(inTime.at(-1)?.to, to)
          for (const [index, step] of inTime.entries()) {
            t.ok(step.from < step.to)
            if (index > 0) t.equal(step.from, inTime[index - 1]!.to)
          }
        }
  t.same(pageSteps({ ...everything, from: NOW, to: NOW }, NOW), [], 'an empty window holds nothing')
  const narrowed = { ...everything, statuses: [] }
  const ref = newId('req', NOW)
  const [near, shared, later] = pageSteps({ ...everything, ref }, NOW)
  t.same(shared, { ...near, isShared: true })
  t.same(later, { from: NOW - DAY_MS, to: everything.to }, 'no call ended long before it was made')
  t.same(pageSteps({ ...everything, ref: 'of another form' }, NOW), [
    { from: everything.from, to: everything.to },
  ])
  t.same(pageSteps(narrowed, NOW), [{ from: 0, to: NOW + 1 }], 'what is rare is looked for at once')
  t.same(pageSteps({ ...narrowed, from: NOW, to: NOW }, NOW), [], 'an empty window holds nothing of it')
  t.end()
})

t.test('in the log', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
  const log = callLogAt(t, engines.clickhouseUrl)

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
      t.same(await find(id, { keyId: 'key_a', statuses: ['rejected'] }), [200])
      t.same(await find(id, { errorCodes: ['rate_limit_exceeded'] }), [200])
      t.same(await find(id, { statuses: ['success'] }), [])
      t.same(await find(id, { accountId: 'acc_b' }), [], 'of another account')
      t.same(await find(id, { keyId: 'key_b' }), [], 'of another key')
    }
    t.same(await find(alone.request_id), [201])
    t.same(await find(newId('req', madeAt)), [])
  })
})
