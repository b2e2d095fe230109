/**
 * Walks over all pages of a long history while rows arrive all the time: none missed, none twice. TOLLGATE_TEST_ALL_REQUESTS=1
 * makes the history a million rows long; that takes minutes, so start this file with node.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@clickhouse/client'
import t, { type Test } from 'tap'
import type { LogPage } from '../../../schemas/call-log/query.ts'
import { openCallLog } from '../../../src/clickhouse/call-log.ts'
import { LIVE_NAMES, tablesOf } from '../../../src/clickhouse/tables/names.ts'
import { Random } from '../../simulation/random.ts'
import { bookedCall } from '../../src/clickhouse/support.ts'
import { startEngines } from '../../support/engines.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { type BookedCall, usageText } from '../../support/usage-text.ts'
import { logs, NO_OPEN_JOBS, reader, request } from './support.ts'

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
    for (const table of tablesOf(LIVE_NAMES)) await client.command({ query: `TRUNCATE TABLE ${table}` })
  })

  const read = (query: string, now: number): Promise<LogPage> =>
    jsonOf(logs({ callLog, tasks: NO_OPEN_JOBS, cursorKey: CURSOR_KEY, now: () => now })(who, request(query)))
  let ranges = 0
  const insert = (calls: readonly BookedCall[]) =>
    callLog.insertCalls({ token: `walk-${++ranges}`, text: usageText(calls) })

  /** All pages from the first query on; `behind` gets each. */
  async function walk(t: Test, query: string, now: number, behind: (page: LogPage) => Promise<void> | void) {
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
