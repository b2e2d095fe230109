/** `GET /v1/logs/summary` and the log as CSV: what they say of the calls is what the calls say. */
import t, { type Test } from 'tap'
import { CALL_STATUSES, LOG_CSV_MAX_ROWS } from '../../../schemas/call-log/row.ts'
import {
  LOG_SUMMARY_CACHE_SECONDS,
  type LogSummary,
  logSummary as summarySchema,
} from '../../../schemas/call-log/summary.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import { Random } from '../../simulation/random.ts'
import { bookedCall } from '../../src/clickhouse/support.ts'
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

  const summarize = (log: Pick<CallLog, 'summarizeCalls'>, now: () => number = () => NOW) => {
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
    const counting: Pick<CallLog, 'summarizeCalls'> = {
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
      JSON.parse((await csv(`${query}&limit=200&format=json`, { who: whole })).text).data as { id: number }[]
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
