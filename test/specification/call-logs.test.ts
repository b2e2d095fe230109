/** "Call logs": the list and its parameters. */
import t from 'tap'
import { until } from '../support/eventually.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate, type World } from './world.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const DAY_MS = 86_400_000

const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)

const chat = (client: Client, options = {}) =>
  client.call('chat-completions', 'plain-chat-completions', options)

/** An account with calls of each kind, all in the log: two successes, an error, a refusal and a picture. */
async function logged(world: World) {
  const client = await world.client('1000000', { accountLogs: true })
  const first = await chat(client)
  const second = await client.call('messages', 'plain-messages')
  const failed = await client.call('chat-completions', 'faulty-chat-completions', {
    say: simulate('fault=status:500'),
  })
  const refused = await client.call('chat-completions', 'unheard-of')
  const image = await client.post('/v1/images/generations', { model: 'demo-image', prompt: 'a kite' })
  await client.rows(5)
  // Failed calls are in a table of their own, which a copy fills a moment later.
  const failures = async () => traces(await client.get('/v1/logs?status=error,rejected'))
  await until('the failed calls are in the log', async () => (await failures()).length === 2)
  return { client, first, second, failed, refused, image }
}

const refused = { status: 400, body: { error: { code: 'invalid_request' } } }

const traces = ({ body }: { body: { data: { request_id: string }[] } }) =>
  body.data.map(({ request_id }) => request_id)

/** A filter, and which of the calls it leaves. */
const FILTERS = [
  ['status=success', ['first', 'second', 'image']],
  ['status=error', ['failed']],
  ['status=rejected', ['refused']],
  ['status=error,rejected', ['failed', 'refused']],
  ['status=interrupted', []],
  ['status=', ['first', 'second', 'failed', 'refused', 'image']],
  ['model=plain-messages', ['second']],
  ['model=plain-messages,demo-image', ['second', 'image']],
  ['model=plain', []],
  ['model=', ['first', 'second', 'failed', 'refused', 'image']],
  ['unit_type=image', ['image']],
  ['unit_type=video', []],
  ['unit_type=image,video', ['image']],
  ['unit_type=', ['first', 'second', 'failed', 'refused', 'image']],
  ['error_code=model_not_found', ['refused']],
  ['error_code=upstream_error', ['failed']],
  ['error_code=upstream_error,model_not_found', ['failed', 'refused']],
  ['error_code=', ['first', 'second', 'failed', 'refused', 'image']],
] as const

const UNIT_TYPES = ['image', 'video', 'music', 'audio', 'avatar', 'voice', 'search', 'transcript', 'chat']

await section(t, 'Call logs', [
  statements(
    FILTERS,
    ([query]) => `The list is filtered by ${query}`,
    async (t, world, [query, expected]) => {
      const calls = await logged(world)
      const answer = await calls.client.get(`/v1/logs?${query}`)
      t.equal(answer.status, 200)
      t.same(traces(answer).sort(), expected.map((name) => calls[name].trace).sort())
    },
  ),
  statements(
    UNIT_TYPES,
    (type) => `unit_type may be ${type}`,
    async (t, world, type) => {
      t.equal((await (await world.client()).get(`/v1/logs?unit_type=${type}`)).status, 200)
    },
  ),
  statements(
    [
      'status=misspelled',
      'status=success,misspelled',
      'include=everything',
      'include=attempts,everything',
      'from=2026-01-01',
      'to=2026-01-01',
      'period=yesterday',
      'order=up',
      'limit=0',
      'limit=201',
      'limit=x',
      'scope=everyone',
      'cursor=forged',
      'from=never&to=2026-01-01',
    ],
    (query) => `The list refuses ${query} with 400 invalid_request`,
    async (t, world, query) => {
      t.match(await (await world.client()).get(`/v1/logs?${query}`), refused)
    },
  ),
  statements(
    ['today', '7d', '30d', 'this_month', 'all'],
    (period) => `period may be ${period}`,
    async (t, world, period) => {
      const client = await world.client()
      const answer = await chat(client)
      await client.row(answer)
      const { status, body } = await client.get(`/v1/logs?period=${period}`)
      t.equal(status, 200)
      t.same(traces({ body }), [answer.trace])
      if (period !== 'all') t.match([body.period_from, body.period_to], [RFC_3339, RFC_3339])
    },
  ),
  statement(
    'The list names its scope, currency and period, and holds 30 days by default',
    async (t, world) => {
      const { body } = await (await world.client()).get('/v1/logs')
      t.match(body, { object: 'list', currency: 'points', scope: 'key', has_more: false, next_cursor: null })
      const length = Date.parse(body.period_to) - Date.parse(body.period_from)
      t.ok(length > 29 * DAY_MS && length <= 31 * DAY_MS, `${length / DAY_MS} days`)
      t.same(body.data, [])
    },
  ),
  statement(
    'from and to are days or instants, mixed at will; a day as to is included whole',
    async (t, world) => {
      const client = await world.client()
      const answer = await chat(client)
      const row = await client.row(answer)
      const at = Date.parse(String(row.created_at))
      const found = async (from: string, to: string) =>
        traces(await client.get(`/v1/logs?from=${from}&to=${to}`)).length
      const instant = (ms: number) => new Date(ms).toISOString()
      t.equal(await found(day(at), day(at)), 1, 'the day of the call')
      t.equal(await found(day(at - DAY_MS), day(at - DAY_MS)), 0, 'the day before')
      t.equal(await found(day(at), instant(at + 1)), 1, 'a day and an instant after')
      t.equal(await found(instant(at), instant(at)), 0, 'an instant as to is excluded')
      t.equal(await found(instant(at), instant(at + 1)), 1, 'an instant as from is included')
      t.equal(await found(instant(at), day(at)), 1, 'an instant and a day')
    },
  ),
  statement('period is ignored where from and to are given', async (t, world) => {
    const client = await world.client()
    await client.row(await chat(client))
    const { body } = await client.get('/v1/logs?period=7d&from=2020-01-01&to=2020-01-02')
    t.same(body.data, [])
    t.match(body.period_from, /^2020-01-01/)
  }),
  statement('ref finds a call by its request id, and a task by its id', async (t, world) => {
    const client = await world.client()
    const answer = await chat(client)
    await client.row(answer)
    const video = await client.post('/v1/videos/generations', {
      model: 'demo-video',
      prompt: 'a',
      duration: 1,
    })
    await client.ended(`/v1/videos/generations/${video.body.id}`)
    await client.row(video)
    t.same(traces(await client.get(`/v1/logs?ref=${answer.trace}`)), [answer.trace])
    t.same(traces(await client.get(`/v1/logs?ref=${video.body.id}`)), [video.trace])
    t.same(traces(await client.get('/v1/logs?ref=req_unknown')), [])
    t.same(traces(await client.get('/v1/logs?ref=')).length, 2)
  }),
  statement('order is desc by default, or asc; limit is 50 by default and 200 at most', async (t, world) => {
    const client = await world.client()
    const count = 52
    await Promise.all(Array.from({ length: count }, () => client.call('chat-completions', 'unheard-of')))
    const rows = await client.rows(count)
    const get = async (query: string) => (await client.get(`/v1/logs?${query}`)).body
    t.equal((await get('')).data.length, 50)
    t.equal((await get('limit=1')).data.length, 1)
    t.equal((await get('limit=200')).data.length, count)
    const ids = rows.map(({ id }) => id)
    const idsOf = (page: { data: { id: number }[] }) => page.data.map(({ id }) => id)
    t.same(idsOf(await get('limit=200&order=desc')), ids)
    t.same(idsOf(await get('limit=200&order=asc')), [...ids].reverse())
  }),
  statement(
    'A cursor leads through the pages; it freezes the window and keeps the order',
    async (t, world) => {
      const client = await world.client()
      const count = 5
      for (let made = 0; made < count; made++) await client.call('chat-completions', 'unheard-of')
      const all = (await client.rows(count)).map(({ id }) => id)
      const seen: number[] = []
      let query = '/v1/logs?limit=2'
      let window: string[] | null = null
      for (let page = 0; page < 3; page++) {
        const { body } = await client.get(query)
        seen.push(...body.data.map(({ id }: { id: number }) => id))
        window ??= [body.period_from, body.period_to]
        t.same([body.period_from, body.period_to], window)
        t.equal(body.has_more, page < 2)
        if (page === 0) await client.row(await client.call('chat-completions', 'unheard-of'))
        if (page < 2) query = `/v1/logs?limit=2&cursor=${encodeURIComponent(body.next_cursor)}`
        else t.equal(body.next_cursor, null)
      }
      t.same(seen, all)
      t.match(await client.get(`${query}&order=asc`), refused, 'another order')
      t.match(await client.get(`${query.slice(0, -1)}~`), refused, 'a changed cursor')
    },
  ),
  statement('include is attempts by default, or in_flight, both, or none', async (t, world) => {
    const client = await world.client()
    await client.row(await chat(client))
    const get = async (query: string) => (await client.get(`/v1/logs?${query}`)).body
    const [plain, none, flight, both] = [
      await get(''),
      await get('include=none'),
      await get('include=in_flight'),
      await get('include=attempts,in_flight'),
    ]
    t.match(plain.data[0].attempts, [{ seq: 1 }])
    t.notOk('in_flight' in plain)
    t.notOk('attempts' in none.data[0] || 'in_flight' in none)
    t.notOk('attempts' in flight.data[0])
    t.same(flight.in_flight, [])
    t.match(both.data[0].attempts, [{ seq: 1 }])
    t.same(both.in_flight, [])
  }),
  statement('in_flight is on the first page only', async (t, world) => {
    const client = await world.client()
    for (const _ of [1, 2]) await client.call('chat-completions', 'unheard-of')
    await client.rows(2)
    const first = (await client.get('/v1/logs?limit=1&include=in_flight')).body
    t.same(first.in_flight, [])
    const cursor = encodeURIComponent(first.next_cursor)
    const second = (await client.get(`/v1/logs?limit=1&include=in_flight&cursor=${cursor}`)).body
    t.notOk('in_flight' in second)
  }),
  statement(
    'scope key shows the calls of the key, scope account those of all keys, key_id one of them',
    async (t, world) => {
      const client = await world.client('1000000', { accountLogs: true })
      const other = await world.another(client)
      const mine = await chat(client)
      const theirs = await chat(other)
      await client.row(mine)
      await other.row(theirs)
      t.same(traces(await client.get('/v1/logs')), [mine.trace])
      t.same(traces(await client.get('/v1/logs?scope=key')), [mine.trace])
      t.same(traces(await client.get('/v1/logs?scope=account')).sort(), [mine.trace, theirs.trace].sort())
      t.same(traces(await client.get(`/v1/logs?scope=account&key_id=${other.keyId}`)), [theirs.trace])
    },
  ),
  statements(
    ['employee', 'compute'] as const,
    (kind) => `A key of kind ${kind} reads its own calls and never those of the account`,
    async (t, world, kind) => {
      const key = await world.another(await world.client(), { kind })
      t.equal((await key.get('/v1/logs')).status, 200)
      for (const path of ['/v1/logs?scope=account', '/v1/logs/summary?scope=account'])
        t.match(await key.get(path), { status: 403, body: { error: { code: 'permission_denied' } } })
    },
  ),
])
