/** "Call logs": what a row says, its detail, the summary, the CSV, and how often a key may read. */
import t from 'tap'
import { parseCredits } from '../../schemas/money.ts'
import { OUTPUT_TOKENS, PLAIN_COST, PROMPT_TOKENS } from './configuration.ts'
import { json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate, type World } from './world.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const DAY_MS = 86_400_000

const LIMIT_PER_MINUTE = 60

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
  return { client, first, second, failed, refused, image }
}

const refused = { status: 400, body: { error: { code: 'invalid_request' } } }

await section(t, 'Call-log rows', [
  statement('A row of a chat call says who called what, when, and what it cost', async (t, world) => {
    const client = await world.client()
    const answer = await chat(client)
    const row = await client.row(answer)
    t.match(row, {
      object: 'log',
      id: Number,
      created_at: RFC_3339,
      submitted_at: RFC_3339,
      key_id: client.keyId,
      key_name: 'test',
      key_prefix: client.key.slice(0, 20),
      model: 'plain-chat-completions',
      status: 'success',
      error_code: null,
      error_message: null,
      input_tokens: PROMPT_TOKENS,
      output_tokens: OUTPUT_TOKENS,
      cached_tokens: 0,
      unit_type: null,
      cost: PLAIN_COST,
      latency_ms: Number,
      request_id: answer.trace,
      attempts_count: 1,
      attempts: [{ seq: 1, created_at: RFC_3339, latency_ms: Number, error_code: null, error_message: null }],
    })
    for (const name of ['unit_count', 'task_id', 'result_urls', 'result_expires_at']) t.ok(name in row, name)
    t.ok(Number.isSafeInteger(row.id) && row.id > 0)
    t.ok(String(row.created_at) >= String(row.submitted_at))
  }),
  statement('Ids of rows rise and are never used again', async (t, world) => {
    const client = await world.client()
    for (const _ of [1, 2, 3]) await client.row(await chat(client))
    const ids = (await client.rows(3)).map(({ id }) => id)
    t.same(
      ids,
      [...new Set(ids)].sort((a, b) => b - a),
    )
  }),
  statement('A row that is billed by units has their type and number', async (t, world) => {
    const client = await world.client()
    const row = await client.row(
      await client.post('/v1/images/generations', { model: 'demo-image', prompt: 'a kite', n: 2 }),
    )
    t.match(row, { unit_type: 'image', unit_count: 2, cost: '25', input_tokens: 0, output_tokens: 0 })
    t.equal((row.result_urls as string[]).length, 2)
    t.match(row.result_expires_at, RFC_3339)
  }),
  statement('An asynchronous job is in flight until it settles, and a row from then on', async (t, world) => {
    const client = await world.client()
    const body = { model: 'demo-video', prompt: simulate('delay=1500,queue=0'), duration: 1 }
    const submitted = await client.post('/v1/videos/generations', body)
    const { id } = submitted.body
    const open = (await client.get('/v1/logs?include=in_flight')).body
    t.match(open.in_flight, [{ task_id: id, request_id: submitted.trace, model: 'demo-video' }])
    t.same(open.data, [])
    await client.ended(`/v1/videos/generations/${id}`)
    const row = await client.row(submitted)
    t.match(row, { task_id: id, status: 'success', attempts_count: null, unit_type: 'video' })
    t.ok(Date.parse(String(row.created_at)) - Date.parse(String(row.submitted_at)) >= 1000)
    t.same((await client.get('/v1/logs?include=in_flight')).body.in_flight, [], 'asked for, and none')
  }),
  statement('A refusal is recorded, costs 0, and no attempt is counted', async (t, world) => {
    const client = await world.client('5')
    const answers = [
      await client.call('chat-completions', 'unheard-of'),
      await client.call('chat-completions', 'unserved'),
      await chat(client),
      await chat(client, { more: { messages: 'hi' } }),
    ]
    const codes = ['model_not_found', 'no_channel_available', 'quota_exceeded', 'invalid_request']
    const rows = await Promise.all(answers.map((answer) => client.row(answer)))
    for (const [index, row] of rows.entries())
      t.match(row, { status: 'rejected', cost: '0', attempts_count: 0, error_code: codes[index] })
  }),
  statement('Without a profile each refusal has a row of its own', async (t, world) => {
    const client = await world.client()
    const many = 25
    const answers = await Promise.all(
      Array.from({ length: many }, () => client.call('chat-completions', 'unheard-of')),
    )
    const rows = await client.rows(many)
    t.same(rows.map(({ request_id }) => request_id).sort(), answers.map(({ trace }) => trace).sort())
  }),
  statements(
    [
      ['chat', 400, 'rejected'],
      ['chat', 422, 'rejected'],
      ['chat', 404, 'error'],
      ['chat', 429, 'error'],
      ['chat', 500, 'error'],
      ['video', 400, 'rejected'],
      ['video', 429, 'error'],
    ] as const,
    ([kind, status, state]) => `An upstream's ${status} to a ${kind} request is ${state} in the log`,
    async (t, world, [kind, status, state]) => {
      const client = await world.client()
      const say = simulate(`fault=status:${status}`)
      const answer =
        kind === 'chat'
          ? await client.call('chat-completions', 'faulty-chat-completions', { say })
          : await client.post('/v1/videos/generations', { model: 'demo-video', prompt: say, duration: 1 })
      t.equal(answer.status, status)
      t.match(await client.row(answer), { status: state, cost: '0' })
    },
  ),
  statement('A call that the clock of the gateway ended is interrupted', async (t, world) => {
    const client = await world.client()
    const answer = await client.call('chat-completions', 'silent-chat-completions')
    t.match(await client.row(answer), { status: 'interrupted', error_code: 'upstream_timeout' })
  }),
  statement('Messages of errors are redacted: no link, no key, no name of an upstream', async (t, world) => {
    const client = await world.client()
    const secret = 'sk-live-0123456789abcdef0123456789abcdef'
    const message = `See https://up.example/x for ${secret} of scripted at 10.1.2.3`
    const { word } = world.upstream.script(json(500, { error: { message } }))
    const answer = await client.call('chat-completions', 'script-chat-completions', { say: word })
    const row = await client.row(answer)
    t.notMatch(JSON.stringify(row), /up\.example|sk-live|10\.1\.2\.3|spec-script/)
    t.match(row.error_message, /See/)
  }),
  statement('attempts_count of 0 and of null are two things', async (t, world) => {
    const client = await world.client()
    const none = await client.row(await client.call('chat-completions', 'unheard-of'))
    const video = await client.post('/v1/videos/generations', {
      model: 'demo-video',
      prompt: 'a',
      duration: 1,
    })
    await client.ended(`/v1/videos/generations/${video.body.id}`)
    t.same([none.attempts_count, (await client.row(video)).attempts_count], [0, null])
  }),
  statement('A row is readable again under its id, with what is known of the call', async (t, world) => {
    const client = await world.client()
    const row = await client.row(await chat(client))
    const { status, body } = await client.get(`/v1/logs/${row.id}`)
    t.equal(status, 200)
    t.match(body, { id: row.id, kind: null, request: Array, upstream: Array, gateway: Array })
    t.ok('request_note' in body)
    for (const group of ['request', 'upstream', 'gateway'])
      for (const item of body[group]) t.same(Object.keys(item).sort(), ['k', 'v'], group)
  }),
  statements(
    [
      ['image', '/v1/images/generations', { model: 'demo-image', prompt: 'a kite', async: true }],
      ['video', '/v1/videos/generations', { model: 'demo-video', prompt: 'a kite', duration: 1 }],
      ['music', '/v1/music/generations', { model: 'demo-music', prompt: 'a waltz' }],
      ['audio', '/v1/audio/speech', { model: 'voice-tts-pro', input: 'Good day', async: true }],
    ] as const,
    ([kind]) => `The detail of a row of ${kind} says so`,
    async (t, world, [kind, path, body]) => {
      const client = await world.client()
      const submitted = await client.post(path, body)
      await client.ended(`${path}/${submitted.body.id}`)
      const row = await client.row(submitted)
      t.equal((await client.get(`/v1/logs/${row.id}`)).body.kind, kind)
    },
  ),
  statement('A row that the key may not see, or that is none, is 404 log_not_found', async (t, world) => {
    const client = await world.client()
    const row = await client.row(await chat(client))
    const missing = { status: 404, body: { error: { code: 'log_not_found' } } }
    t.match(await (await world.client()).get(`/v1/logs/${row.id}`), missing, 'of another account')
    t.match(await (await world.another(client)).get(`/v1/logs/${row.id}`), missing, 'of another key')
    t.match(await client.get('/v1/logs/9007199254740991'), missing, 'of nobody')
    const reader = await world.another(client, { accountLogs: true })
    t.equal((await reader.get(`/v1/logs/${row.id}`)).status, 200, 'with the toggle')
  }),
  statement('The summary adds up calls by status, by day and by model', async (t, world) => {
    const { client, first, second } = await logged(world)
    const { status, body } = await client.get('/v1/logs/summary')
    t.equal(status, 200)
    const cost = '48.5'
    t.match(body, {
      object: 'logs.summary',
      currency: 'points',
      scope: 'key',
      period_from: RFC_3339,
      period_to: RFC_3339,
      total: { requests: 5, cost, input_tokens: 20, output_tokens: 8, cached_tokens: 0 },
      status_counts: { success: 3, error: 1, interrupted: 0, rejected: 1 },
    })
    t.match(body.by_day, [{ date: day(Date.now()), requests: 5, cost, tokens: 28 }])
    const plain = body.by_model.find(({ model }: { model: string }) => model === 'plain-messages')
    t.match(plain, { requests: 1, cost: PLAIN_COST, total_tokens: 14 })
    t.not(first.trace, second.trace)
    const sum = body.by_model.reduce(
      (total: bigint, each: { cost: string }) => total + parseCredits(each.cost),
      0n,
    )
    t.equal(sum, parseCredits(cost))
  }),
  statement('The window of a summary is 365 days at most', async (t, world) => {
    const client = await world.client()
    const ask = async (days: number) => {
      const to = Date.parse('2026-06-01T00:00:00Z')
      const from = new Date(to - days * DAY_MS).toISOString()
      return (await client.get(`/v1/logs/summary?from=${from}&to=${new Date(to).toISOString()}`)).status
    }
    t.equal(await ask(365), 200)
    t.equal(await ask(366), 400)
  }),
  statement('A summary is kept for 60 seconds', async (t, world) => {
    const client = await world.client()
    await client.row(await chat(client))
    const before = (await client.get('/v1/logs/summary')).body
    t.equal(before.total.requests, 1)
    await client.row(await chat(client))
    t.equal((await client.get('/v1/logs/summary')).body.total.requests, 1)
  }),
  statement('Attempts on other channels do not count as calls', async (t, world) => {
    const client = await world.client()
    const answer = await client.call('chat-completions', 'faulty-chat-completions', {
      say: simulate('fault=status:503'),
    })
    await client.row(answer)
    const { total, status_counts } = (await client.get('/v1/logs/summary')).body
    t.same([total.requests, status_counts.error], [1, 1])
  }),
  statement(
    'The CSV has cost_usd in place of cost, links joined by a bar, and is named logs.csv',
    async (t, world) => {
      const client = await world.client()
      const image = { model: 'demo-image', prompt: 'a kite', n: 2 }
      const row = await client.row(await client.post('/v1/images/generations', image))
      for (const answer of [
        await client.get('/v1/logs?format=csv'),
        await client.get('/v1/logs', { accept: 'text/csv' }),
      ]) {
        t.equal(answer.status, 200)
        t.match(answer.headers.get('content-type'), /^text\/csv/)
        t.match(answer.headers.get('content-disposition'), /filename="?logs\.csv"?/)
        t.equal(answer.headers.get('x-truncated'), null)
        const [head = '', line = ''] = answer.text.trim().split(/\r?\n/)
        const names = head.split(',')
        t.ok(names.includes('cost_usd') && !names.includes('cost'))
        t.ok(line.includes((row.result_urls as string[]).join('|')))
        t.equal(line.split(',')[names.indexOf('cost_usd')], '25')
      }
    },
  ),
  statement('A key at a balance of zero, or below, reads the log', async (t, world) => {
    const client = await world.client('0')
    for (const path of ['/v1/logs', '/v1/logs/summary']) t.equal((await client.get(path)).status, 200)
  }),
  statement('The three endpoints share 60 requests a minute for each key', async (t, world) => {
    const client = await world.client()
    const paths = ['/v1/logs', '/v1/logs/summary', '/v1/logs/1']
    for (let asked = 0; asked < LIMIT_PER_MINUTE; asked++) {
      const { status, headers } = await client.get(paths[asked % paths.length]!)
      if (status === 429) t.fail(`refused after ${asked}`)
      t.equal(headers.get('x-ratelimit-limit'), String(LIMIT_PER_MINUTE))
      t.equal(headers.get('x-ratelimit-remaining'), String(LIMIT_PER_MINUTE - 1 - asked))
      t.match(headers.get('x-ratelimit-reset'), /^\d+$/)
    }
    for (const path of paths) {
      const over = await client.get(path)
      t.match(over, { status: 429, body: { error: { code: 'logs_rate_limited' } } })
      t.match(over.headers.get('retry-after'), /^[1-9]\d*$/)
    }
    t.equal((await (await world.another(client)).get('/v1/logs')).status, 200, 'another key')
    t.equal((await chat(client)).status, 200, 'the limit of calls is another')
  }),
  statement('The usage endpoint counts refused calls and no attempts', async (t, world) => {
    const { client } = await logged(world)
    const { status, body } = await client.get('/api/v1/usage')
    t.equal(status, 200)
    t.equal(body.total_requests, 5)
  }),
  statements(
    [
      'model=x',
      'status=error',
      'unit_type=image',
      'error_code=x',
      'ref=req_1',
      'period=all',
      'from=2026-01-01',
    ],
    (query) => `The summary refuses ${query} with 400 invalid_request`,
    async (t, world, query) => {
      t.match(await (await world.client()).get(`/v1/logs/summary?${query}`), refused)
    },
  ),
])
