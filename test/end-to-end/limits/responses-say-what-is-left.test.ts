/** Rate limits as a client sees them. */
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { callConfig, errorOf, post, readUntil, rowOf, say, traceOf } from '../support.ts'

const LIMIT = 20
const MESSAGES = say('hi')
const config = callConfig({
  fast: { simulate: 'tokens=1' },
  slow: { simulate: 'tokens=2000,tps=20' },
  refused: { simulate: 'fault=status:400' },
  limited: { simulate: 'fault=status:429,retry_after=17' },
  cut: { simulate: 'tokens=100,fault=reset:2000' },
})

const rateHeaders = ({ headers }: Response) =>
  Object.fromEntries(
    [...headers].filter(([name]) => name.startsWith('x-ratelimit') || name === 'retry-after'),
  )

const REQUEST_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
const isWholeSeconds = (text: string | null, atMost: number) =>
  text !== null && /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= atMost

t.test('rate limits', async (t) => {
  const service = await borrowService(t, config)
  const call = (key: string, model: string, more: object = {}) =>
    service.chat(key, { model, messages: MESSAGES, ...more })
  const newKey = async (limits: { requestsPerMinute?: number; concurrency?: number }) => {
    const made = await service.newKey('1000000')
    await service.database.accounts.setLimits(made.accountId, limits)
    return made
  }

  await t.test('without any, no response speaks of them', async (t) => {
    const { key } = await service.newKey('1000000')
    for (const response of [await call(key, 'fast'), await call(key, 'limited'), await call(key, 'none')]) {
      const { 'retry-after': _, ...rest } = rateHeaders(response)
      t.same(rest, {})
    }
  })

  await t.test('every response of a counted request says what is left', async (t) => {
    const { key } = await newKey({ requestsPerMinute: LIMIT, concurrency: 5 })
    let left = LIMIT
    const check = async (name: string, asked: Promise<Response>, status: number) => {
      const response = await asked
      left--
      t.equal(response.status, status, name)
      const { 'x-ratelimit-reset': reset = null, ...headers } = rateHeaders(response)
      t.ok(isWholeSeconds(reset, 60), `${name}: reset`)
      t.match(headers, {
        'x-ratelimit-limit': String(LIMIT),
        'x-ratelimit-remaining': String(left),
        'x-ratelimit-limit-requests': String(LIMIT),
        'x-ratelimit-remaining-requests': String(left),
        'x-ratelimit-reset-requests': reset,
        'x-ratelimit-limit-concurrency': '5',
        'x-ratelimit-remaining-concurrency': '4',
      })
      await readUntil(response)
    }
    await check('whole', call(key, 'fast'), 200)
    await check('stream', call(key, 'fast', { stream: true }), 200)
    await check('cut stream', call(key, 'cut', { stream: true }), 200)
    await check('models', service.get(key, '/v1/models'), 200)
    for (const name of ['subscription', 'usage', 'credit_grants'])
      await check(name, service.get(key, `/v1/dashboard/billing/${name}`), 200)
    await check('upstream refusal', call(key, 'refused'), 400)
    await check('unknown model', call(key, 'none'), 400)
    await check('invalid body', post(service, key, '/v1/chat/completions', []), 400)
    await check('embeddings', post(service, key, '/v1/embeddings', { model: 'fast', input: 'x' }), 404)
    await check('count_tokens', post(service, key, '/v1/messages/count_tokens', { model: 'none' }), 400)
    const contents = [{ parts: [{ text: 'hi' }] }]
    await check('generate', post(service, key, '/v1beta/models/none:generateContent', { contents }), 400)
    const poor = await service.newKey('0')
    await service.database.accounts.setLimits(poor.accountId, { requestsPerMinute: 3 })
    const unpaid = await call(poor.key, 'fast')
    t.equal(unpaid.status, 402)
    t.equal(unpaid.headers.get('x-ratelimit-remaining'), '2')
  })

  await t.test("an upstream's own limit differs from ours by their absence", async (t) => {
    const { key } = await newKey({ requestsPerMinute: LIMIT })
    const response = await call(key, 'limited')
    t.equal(response.status, 429)
    t.same(rateHeaders(response), { 'retry-after': '17' })
  })

  await t.test(
    'an empty wallet is refused before its rate, in every protocol, and counts all the same',
    async (t) => {
      const { key, accountId } = await service.newKey('0')
      await service.database.accounts.setLimits(accountId, { requestsPerMinute: 2 })
      const asked = { model: 'fast', max_tokens: 5, messages: MESSAGES }
      const contents = [{ parts: [{ text: 'hi' }] }]
      const first = await call(key, 'fast')
      t.equal(first.status, 402)
      t.equal(first.headers.get('x-ratelimit-remaining'), '1', 'it has counted')
      t.equal((await service.get(key, '/v1/models')).headers.get('x-ratelimit-remaining'), '0')
      t.equal((await service.get(key, '/v1/models')).status, 429, 'what is free is refused for its rate')
      for (const [path, body] of [
        ['/v1/chat/completions', asked],
        ['/v1/messages', asked],
        ['/v1/responses', { model: 'fast', input: MESSAGES }],
        ['/v1beta/models/fast:generateContent', { contents }],
        ['/v1/images/generations', { model: 'none', prompt: 'x' }],
        ['/v1/videos/generations', { model: 'none', prompt: 'x' }],
        ['/v1/music/generations', { model: 'none', prompt: 'x' }],
        ['/v1/audio/speech', { model: 'none', input: 'x' }],
        ['/v1/audio/voices', { name: 'x', audio_url: 'https://x.test/a.mp3' }],
        ['/v1/transcripts/extract', { url: 'https://x.test/a' }],
        ['/v1/videos/avatars', { name: 'x', source_url: 'https://x.test/a.png' }],
        ['/v1/videos/clip-subtitles', { video_url: 'https://x.test/a.mp4' }],
      ] as const) {
        const refused = await post(service, key, path, body)
        t.equal(refused.status, 402, path)
        const { 'x-ratelimit-reset': _, 'x-ratelimit-reset-requests': __, ...rest } = rateHeaders(refused)
        const counted = { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' }
        t.match(rest, counted, path)
        t.notOk('retry-after' in rest, `${path}: waiting does not help`)
        await refused.text()
      }
    },
  )

  await t.test('the balance never counts; refusals of the key itself say nothing', async (t) => {
    const { key } = await newKey({ requestsPerMinute: 1 })
    for (const path of ['/v1/key/balance', '/api/v1/usage'])
      for (let time = 0; time < 3; time++) {
        const response = await service.get(key, path)
        t.equal(response.status, 200)
        t.same(rateHeaders(response), {}, path)
      }
    t.equal((await call(key, 'fast')).status, 200)
    t.equal((await service.get(key, '/v1/key/balance')).status, 200, 'over the limit, too')
    t.same(rateHeaders(await call('sk-tollgate-none', 'fast')), {})
  })

  await t.test('over requests per minute: 429 in the shape of the protocol, and a row', async (t) => {
    const { key } = await newKey({ requestsPerMinute: 1 })
    t.equal((await call(key, 'fast')).status, 200)
    const refused = await call(key, 'fast')
    t.equal(refused.status, 429)
    t.match(rateHeaders(refused), { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' })
    t.ok(isWholeSeconds(refused.headers.get('retry-after'), 60))
    t.equal(refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-reset'))
    const error = await errorOf(refused)
    t.match(error, { code: 'rate_limit_exceeded', type: 'rate_limit_error', message: /requests per minute/ })
    t.notMatch(error.message, /concurrency/)
    const row = await rowOf(service, key, traceOf(refused))
    t.match(row, { status: 'rejected', error_code: 'rate_limit_exceeded', model: 'fast', cost: '0' })

    const messages = await post(service, key, '/v1/messages', {
      model: 'fast',
      max_tokens: 5,
      messages: MESSAGES,
    })
    t.match(await messages.json(), { type: 'error', error: { type: 'rate_limit_error' } })
    const generate = await post(service, key, '/v1beta/models/fast:generateContent', { contents: [] })
    const after = generate.headers.get('retry-after')
    t.match(await generate.json(), {
      error: { code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: `${after}s` }] },
    })
    t.equal((await service.get(key, '/v1/models')).status, 429)
  })

  await t.test('over concurrency: 429 that names it; the slot is back when the stream is over', async (t) => {
    const { key, accountId } = await newKey({ concurrency: 1 })
    const stream = await call(key, 'slow', { stream: true })
    const second = await service.database.keys.create({ name: 'second', accountId })
    const refused = await call(second.raw, 'fast')
    t.equal(refused.status, 429, "another key's request counts for the account")
    t.same(rateHeaders(refused), {
      'retry-after': '1',
      'x-ratelimit-limit-concurrency': '1',
      'x-ratelimit-remaining-concurrency': '0',
    })
    const { message } = await errorOf(refused)
    t.match(message, /concurrency/)
    t.notMatch(message, /requests per minute/)
    await stream.body!.cancel()
    await until('the slot is back', async () => (await call(key, 'fast')).status === 200)
  })

  await t.test('the call log has its own limit, for each key', async (t) => {
    const { key, accountId } = await newKey({ requestsPerMinute: 1 })
    const read = (by: string) => service.get(by, '/v1/logs?limit=1')
    const [first] = await Promise.all(Array.from({ length: 60 }, () => read(key)))
    t.equal(first?.status, 200)
    t.same(Object.keys(rateHeaders(first!)).sort(), REQUEST_HEADERS)
    t.equal(first!.headers.get('x-ratelimit-limit'), '60')
    const refused = await read(key)
    t.equal(refused.status, 429)
    t.ok(isWholeSeconds(refused.headers.get('retry-after'), 60))
    t.equal(refused.headers.get('x-ratelimit-remaining'), '0')
    t.match(await errorOf(refused), { code: 'logs_rate_limited', type: 'rate_limit_error' })
    const other = await service.database.keys.create({ name: 'second', accountId })
    t.equal((await read(other.raw)).headers.get('x-ratelimit-remaining'), '59')
    t.equal((await call(key, 'fast')).status, 200, 'and takes nothing from the calls')
    const invalid = await service.get(other.raw, '/v1/logs?limit=x')
    t.equal(invalid.status, 400)
    t.equal(invalid.headers.get('x-ratelimit-remaining'), '58')
  })
})
