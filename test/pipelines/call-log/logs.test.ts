import t, { type Test } from 'tap'
import { type LogPage, logPage } from '../../../schemas/call-log/query.ts'
import { bookedCall } from '../../src/clickhouse/support.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { usageText } from '../../support/usage-text.ts'
import { logs, NO_OPEN_JOBS, type Reader, reader, request } from './support.ts'

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
    t.same(only.attempts, [{ seq: 1, created_at, latency_ms, error_code, error_message }], 'its row says all')
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
