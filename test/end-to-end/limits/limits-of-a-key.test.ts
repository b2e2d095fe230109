/** Limits of one key over all gateway processes: requests per minute, concurrency, addresses. */
import t from 'tap'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { eventually, startService, until } from '../../support/service.ts'
import { callConfig, errorOf, rowOf, say, traceOf } from '../support.ts'

const MESSAGES = say('hi')
const config = callConfig(
  { fast: { simulate: 'tokens=1' }, slow: { simulate: 'tokens=5000,tps=20' } },
  'server: { trusted_proxies: [127.0.0.1] }',
)

t.test('limits of a key', async (t) => {
  const engines = await startEngines(t)
  const service = await startService(t, { engines, config, env: { TOLLGATE_WORKERS: '3' } })
  const owner = await signIn(service)
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const operator = await signIn(service, { role: 'operator' })
  await operator.send('POST', `/accounts/${account_id}/adjustments`, { amount: '1000000', reason: 'a test' })

  const newKey = async (limits: object) => {
    const { status, body } = await owner.send('POST', '/keys', { account_id, name: 'limited', ...limits })
    t.equal(status, 201)
    return body
  }
  const call = (key: string, { from = '', model = 'fast', stream = false } = {}) =>
    fetch(`${service.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model, messages: MESSAGES, stream }),
      headers: { authorization: `Bearer ${key}`, ...(from !== '' && { 'x-forwarded-for': from }) },
    })
  const callMany = async (times: number, key: string) => {
    const responses = await Promise.all(Array.from({ length: times }, () => call(key)))
    await Promise.all(responses.map((response) => response.arrayBuffer()))
    return responses
  }
  const countOf = (responses: readonly Response[], status: number) =>
    responses.filter((response) => response.status === status).length
  /** One request of each protocol of chat. */
  const inEachProtocol = (key: string, from: string) => {
    const post = (path: string, body: object) =>
      fetch(service.baseUrl + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'x-api-key': key, 'x-forwarded-for': from },
      })
    return Promise.all([
      post('/v1/chat/completions', { model: 'fast', messages: MESSAGES }),
      post('/v1/responses', { model: 'fast', input: 'hi' }),
      post('/v1/messages', { model: 'fast', max_tokens: 5, messages: MESSAGES }),
      post('/v1beta/models/fast:generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }),
    ])
  }

  await t.test('of 40 requests to three workers exactly 10 are admitted', async (t) => {
    const { key } = await newKey({ requests_per_minute: 10 })
    const responses = await callMany(40, key)
    t.equal(countOf(responses, 200), 10)
    t.equal(countOf(responses, 429), 30)
    const other = await newKey({})
    t.equal((await call(other.key)).status, 200, 'other keys of the account are not concerned')
  })

  await t.test('of 40 streams at once exactly 10 are open, and a slot is given back', async (t) => {
    const { key } = await newKey({ concurrency: 10 })
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => call(key, { model: 'slow', stream: true })),
    )
    const open = responses.filter(({ status }) => status === 200)
    t.equal(open.length, 10)
    const refused = responses.find(({ status }) => status === 429)!
    t.match(
      (await errorOf(refused)).message,
      /concurrency\. At most 10 requests of this API key may be in flight/,
    )
    await Promise.all(open.map(({ body }) => body!.cancel()))
    await until('the slots are back', async () => (await call(key)).status === 200)
  })

  await t.test('headers and message name the tighter limit, of key and account', async (t) => {
    await operator.send('PATCH', `/accounts/${account_id}`, { requests_per_minute: 1000, concurrency: 4 })
    const limited = await newKey({ requests_per_minute: 2, concurrency: 50 })
    const first = await eventually('the limits of the account are in force', async () => {
      const response = await call((await newKey({ requests_per_minute: 2, concurrency: 50 })).key)
      return response.headers.get('x-ratelimit-limit-concurrency') === '4' ? response : undefined
    })
    t.equal(first!.headers.get('x-ratelimit-limit'), '2', 'requests of the key')
    t.equal(first!.headers.get('x-ratelimit-remaining'), '1')
    t.equal(first!.headers.get('x-ratelimit-remaining-concurrency'), '3', 'slots of the account')
    await callMany(2, limited.key)
    const refused = await call(limited.key)
    t.equal(refused.status, 429)
    t.equal(refused.headers.get('x-ratelimit-remaining'), '0')
    t.equal(refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-reset'))
    const { message, code } = await errorOf(refused)
    t.match(message, /requests per minute\. This API key may make 2; try again in \d+ s/)
    t.match(await rowOf(service, limited.key, traceOf(refused)), { status: 'rejected', error_code: code })
    await operator.send('PATCH', `/accounts/${account_id}`, { requests_per_minute: 1, concurrency: null })
    const byAccount = await eventually('the account is over its limit', async () => {
      const response = await call((await newKey({ requests_per_minute: 50 })).key)
      return response.status === 429 ? response : undefined
    })
    t.match((await errorOf(byAccount!)).message, /This account may make 1/)
    await operator.send('PATCH', `/accounts/${account_id}`, { requests_per_minute: null, concurrency: null })
    await until('it has none again', async () => {
      const response = await call((await newKey({})).key)
      return response.headers.get('x-ratelimit-limit') === null
    })
  })

  await t.test('a forbidden address is refused in the shape of each protocol, with a row', async (t) => {
    const { key } = await newKey({ allowed_addresses: ['203.0.113.0/24', '2001:db8::/32'] })
    const allowed = await inEachProtocol(key, '203.0.113.9')
    t.same(
      allowed.map(({ status }) => status),
      [200, 503, 503, 503],
      'the other protocols have no channel',
    )
    t.equal((await call(key, { from: '2001:db8::5' })).status, 200)
    t.equal(
      (await call(key, { from: '::ffff:203.0.113.9' })).status,
      200,
      'a mapped address is its IPv4 address',
    )
    for (const [why, from] of [
      ['another address', '198.51.100.7'],
      ['none but the proxy', ''],
      ['a forged first hop', '203.0.113.9, 198.51.100.7'],
      ['a text that is no address', '203.0.113.9, unknown'],
      ['the other family', '2001:db9::1'],
    ] as const)
      t.equal((await call(key, { from })).status, 403, why)
    const refused = await inEachProtocol(key, '198.51.100.7')
    const bodies = await Promise.all(refused.map((response) => response.json()))
    const message = /may not be used from the address 198\.51\.100\.7: it is limited to other addresses/
    t.match(bodies, [
      { error: { code: 'permission_denied', type: 'permission_error', message } },
      { error: { code: 'permission_denied', type: 'permission_error', message } },
      { type: 'error', error: { type: 'permission_error', message } },
      { error: { code: 403, status: 'PERMISSION_DENIED', message } },
    ])
    const reader = await newKey({ account_logs: true })
    const rows = await service.logs(
      reader.key,
      (found) =>
        refused.every((response) => found.some(({ request_id }) => request_id === traceOf(response))),
      '&scope=account&status=rejected',
    )
    t.match(
      rows.find(({ request_id }) => request_id === traceOf(refused[2]!)),
      { error_code: 'permission_denied', model: 'fast', cost: '0' },
    )
    t.equal((await service.get(key, '/v1/key/balance')).status, 403, 'free endpoints, too')
  })

  await t.test('a limit of the key is refused in the shape of each protocol', async (t) => {
    const { key } = await newKey({ requests_per_minute: 1 })
    t.equal((await call(key)).status, 200)
    const refused = await inEachProtocol(key, '198.51.100.7')
    t.same(
      refused.map(({ status }) => status),
      [429, 429, 429, 429],
    )
    const message = /This API key may make 1/
    t.match(await Promise.all(refused.map((response) => response.json())), [
      { error: { code: 'rate_limit_exceeded', message } },
      { error: { code: 'rate_limit_exceeded', message } },
      { type: 'error', error: { type: 'rate_limit_error', message } },
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message } },
    ])
  })

  await t.test('limits are changed and shown, in force on every worker, and audited', async (t) => {
    const { id, key } = await newKey({})
    t.match((await owner.send('GET', `/keys/${id}`)).body, {
      requests_per_minute: null,
      concurrency: null,
      allowed_addresses: null,
    })
    const change = (changes: object) => owner.send('PATCH', `/keys/${id}`, changes)
    const changed = await change({ requests_per_minute: 600, allowed_addresses: ['::ffff:10.0.0.0/104'] })
    t.match(changed.body, { requests_per_minute: 600, allowed_addresses: ['10.0.0.0/8'] })
    await until('every worker refuses the address', async () => {
      const responses = await callMany(12, key)
      return countOf(responses, 403) === 12
    })
    t.match((await change({ allowed_addresses: null })).body, {
      requests_per_minute: 600,
      allowed_addresses: null,
    })
    await until('every worker takes it again', async () => countOf(await callMany(12, key), 200) === 12)
    for (const [wrong, message] of [
      [{ allowed_addresses: ['10.1.2.3/8'] }, /allowed_addresses: .*write 10\.0\.0\.0\/8/],
      [{ allowed_addresses: ['example.com'] }, /allowed_addresses: "example\.com" is neither/],
      [{ allowed_addresses: [] }, /allowed_addresses: names at least one address/],
      [{ requests_per_minute: 0 }, /requests_per_minute/],
      [{ concurrency: 1.5 }, /concurrency/],
    ] as const) {
      const { status, body } = await change(wrong)
      t.equal(status, 400)
      t.match(body.error.message, message)
    }
    const [entry] = await service.database.auditRecord.list({ subjectId: id, limit: 2 })
    t.match(entry, { action: 'key.update', before: { allowed_addresses: ['10.0.0.0/8'] } })
    const stranger = await signIn(service)
    for (const [method, path, body] of [
      ['PATCH', `/keys/${id}`, { requests_per_minute: 1 }],
      ['POST', `/keys/${id}/rotate`, {}],
      ['POST', `/keys/${id}/end-former-secret`, {}],
    ] as const)
      t.equal((await stranger.send(method, path, body)).status, 404, `${path} of another tenant`)
  })
})
