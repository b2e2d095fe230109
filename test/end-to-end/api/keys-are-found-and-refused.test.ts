import t, { type Test } from 'tap'
import { AUTH_MESSAGES } from '../../../schemas/failure.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { eventually, startService, type TestService } from '../../support/service.ts'
import { callConfig, errorOf, rowOf, say, secretsIn, traceOf } from '../support.ts'

const MODELS = {
  fast: { simulate: 'tokens=2', extra: 'aliases: [fast-2024, quick]' },
  other: { simulate: 'tokens=2' },
  upcoming: { served: false, extra: 'callable: false' },
  unserved: { served: false },
}
const BODY = JSON.stringify({ model: 'fast', messages: say('hi'), max_tokens: 2 })

interface Presented {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}

const call = (service: TestService, { headers = {}, query = '' }: Presented): Promise<Response> =>
  fetch(`${service.baseUrl}/v1/chat/completions${query}`, {
    method: 'POST',
    body: BODY,
    // A new connection each time: two processes share the port, and the kernel chooses between them.
    headers: { 'content-type': 'application/json', connection: 'close', ...headers },
  })
const bearer = (key: string): Presented => ({ headers: { authorization: `Bearer ${key}` } })

/** So many calls on connections of their own reach both processes, but for one chance in a million. */
const CALLS_TO_REACH_BOTH = 20

/** Resolves when every process answers alike. A change is in force within a second; what is waited for here is more. */
const everywhere = async (
  t: Pick<Test, 'ok'>,
  what: string,
  service: TestService,
  key: string,
  expected: string,
) =>
  t.ok(
    await eventually(what, async () => {
      for (let i = 0; i < CALLS_TO_REACH_BOTH; i++) {
        const response = await call(service, bearer(key))
        const answer = response.ok ? 'ok' : (await errorOf(response)).message
        if (response.ok) await response.text()
        if (answer !== expected) return undefined
      }
      return true
    }),
    what,
  )

t.test('keys', async (t) => {
  const service = await startService(t, {
    config: callConfig(MODELS),
    env: { TOLLGATE_WORKERS: '2', LOG_LEVEL: 'trace' },
  })
  const { key, keyId, accountId } = await service.newKey('100000')
  const unknown = generateApiKey()

  await t.test('a key is found in each of its places', async (t) => {
    const places: readonly Presented[] = [
      { headers: { 'x-api-key': key } },
      { headers: { 'x-partner-api-key': key } },
      { headers: { 'x-goog-api-key': key } },
      { query: `?key=${key}` },
      { query: `?alt=sse&key=${key}` },
      bearer(key),
      { headers: { authorization: `bearer  ${key}` } },
    ]
    for (const place of places) t.equal((await call(service, place)).status, 200, JSON.stringify(place))
  })

  await t.test('the first place that holds one decides', async (t) => {
    const inOrder: readonly Presented[] = [
      { headers: { 'x-api-key': unknown } },
      { headers: { 'x-partner-api-key': unknown } },
      { headers: { 'x-goog-api-key': unknown } },
      { query: `?key=${unknown}` },
      bearer(unknown),
    ]
    const right: readonly Presented[] = [
      { headers: { 'x-api-key': key } },
      { headers: { 'x-partner-api-key': key } },
      { headers: { 'x-goog-api-key': key } },
      { query: `?key=${key}` },
      bearer(key),
    ]
    const both = (a: Presented, b: Presented): Presented => ({
      headers: { ...a.headers, ...b.headers },
      query: a.query ?? b.query ?? '',
    })
    for (let first = 0; first < right.length; first++)
      for (let later = first + 1; later < right.length; later++) {
        t.equal(
          (await call(service, both(right[first]!, inOrder[later]!))).status,
          200,
          `${first} before ${later}`,
        )
        t.equal(
          (await call(service, both(inOrder[first]!, right[later]!))).status,
          401,
          `${first} before ${later}`,
        )
      }
  })

  await t.test('five reasons, five messages', async (t) => {
    const refused = async (presented: Presented, message: string) => {
      const response = await call(service, presented)
      t.equal(response.status, 401)
      t.match(response.headers.get('x-gateway-trace'), /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
      t.same(await errorOf(response), { message, type: 'authentication_error', code: 'invalid_api_key' })
    }
    const malformed = [
      '',
      'x',
      key.slice(0, -1),
      `${key}0`,
      key.toUpperCase(),
      key.replace('sk-tollgate-', 'sk-anothers-'),
      `sk-tollgate-${'g'.repeat(64)}`,
    ]
    await refused({}, AUTH_MESSAGES.missing)
    await refused({ headers: { authorization: `Basic ${key}` } }, AUTH_MESSAGES.missing)
    await refused({ headers: { authorization: key } }, AUTH_MESSAGES.missing)
    for (const text of malformed) await refused(bearer(text), AUTH_MESSAGES.missing)
    await refused(bearer(unknown), AUTH_MESSAGES.invalid)

    const past = await service.newKey('1', { expiresAt: new Date(Date.now() - 1) })
    await refused(bearer(past.key), AUTH_MESSAGES.expired)
    const disabled = await service.newKey('1')
    await service.database.keys.update(disabled.keyId, { enabled: false })
    await refused(bearer(disabled.key), AUTH_MESSAGES.revoked)
    const revoked = await service.newKey('1')
    await service.database.keys.revoke(revoked.keyId)
    await refused(bearer(revoked.key), AUTH_MESSAGES.revoked)
    const inactive = await service.newKey('1')
    await service.database.accounts.setEnabled(inactive.accountId, false)
    await refused(bearer(inactive.key), AUTH_MESSAGES.inactive)
    const { data } = (await (await service.get(key, '/v1/logs?status=rejected')).json()) as {
      data: unknown[]
    }
    t.same(data, [], 'and none of them leaves a row')
  })

  await t.test('a change is in force on every process', async (t) => {
    await everywhere(t, 'the key opens', service, key, 'ok')
    await service.database.keys.update(keyId, { allowedModels: ['other'] })
    await everywhere(
      t,
      'the model is not allowed',
      service,
      key,
      "This API key may not call the model 'fast'.",
    )
    await service.database.keys.update(keyId, { allowedModels: ['quick'] })
    await everywhere(t, 'the model is allowed by its alias', service, key, 'ok')
    await service.database.accounts.setEnabled(accountId, false)
    await everywhere(t, 'the account is off', service, key, AUTH_MESSAGES.inactive)
    await service.database.accounts.setEnabled(accountId, true)
    await everywhere(t, 'the account is on again', service, key, 'ok')
    await service.database.keys.update(keyId, { expiresAt: new Date(0) })
    await everywhere(t, 'the key has expired', service, key, AUTH_MESSAGES.expired)
    await service.database.keys.update(keyId, { expiresAt: null, enabled: false })
    await everywhere(t, 'the key is off', service, key, AUTH_MESSAGES.revoked)
    await service.database.keys.update(keyId, { enabled: true, allowedModels: null })
    await everywhere(t, 'the key is on again', service, key, 'ok')

    const made = await service.database.keys.create({ accountId, name: 'second' })
    await everywhere(t, 'a new key opens', service, made.raw, 'ok')
    await service.database.keys.revoke(made.key.id)
    await everywhere(t, 'the new key is revoked', service, made.raw, AUTH_MESSAGES.revoked)
    await everywhere(t, 'the first still opens', service, key, 'ok')
  })

  await t.test('an empty wallet is 402 before anything is read; a top-up is seen everywhere', async (t) => {
    const poor = await service.newKey('0')
    const empty =
      'The account balance is insufficient for this call: it is 0 credits. Please top up and try again.'
    await everywhere(t, 'the wallet is empty', service, poor.key, empty)
    const malformed = await service.chat(poor.key, {}, { body: 'no JSON at all' })
    t.equal(malformed.status, 402)
    await service.database.wallets.topUp(poor.accountId, 40_440_000_000n)
    await everywhere(t, 'the top-up is seen', service, poor.key, 'ok')
  })

  await t.test('which models a key may call', async (t) => {
    const limited = await service.newKey('100000', { allowedModels: ['other', 'quick', 'gone'] })
    const none = await service.newKey('100000', { allowedModels: [] })
    const ask = (who: string, model: string) =>
      service.chat(who, { model, messages: say('hi'), max_tokens: 2 })
    const refused = async (who: string, model: string, status: number, code: string) => {
      const response = await ask(who, model)
      const trace = traceOf(response)
      t.equal(response.status, status)
      t.equal((await errorOf(response)).code, code)
      return rowOf(service, who, trace)
    }
    for (const model of ['fast', 'fast-2024', 'quick']) {
      const response = await ask(key, model)
      t.equal(response.status, 200)
      t.equal((await rowOf(service, key, traceOf(response))).model, 'fast', 'the row has the canonical id')
    }
    t.equal((await ask(limited.key, 'fast-2024')).status, 200, 'an alias in the list allows the model')
    t.match(await refused(none.key, 'fast', 400, 'model_not_allowed'), { status: 'rejected', model: 'fast' })
    await refused(none.key, 'upcoming', 400, 'model_not_found')
    t.match(await refused(key, 'unheard-of', 400, 'model_not_found'), {
      status: 'rejected',
      model: 'unheard-of',
    })
    await refused(key, 'upcoming', 400, 'model_not_found')
    await refused(key, 'unserved', 503, 'no_channel_available')
    await refused(limited.key, 'unserved', 400, 'model_not_allowed')

    const listed = async (who: string) => {
      const { data } = (await (await service.get(who, '/v1/models')).json()) as { data: { id: string }[] }
      return data.map(({ id }) => id)
    }
    t.same(await listed(key), ['fast', 'other', 'unserved'])
    t.same(await listed(limited.key), ['fast', 'other'])
    t.same(await listed(none.key), [])
  })

  await t.test('the model list takes a key in three places', async (t) => {
    const list = async ({ headers = {}, query = '' }: Presented) =>
      (await fetch(`${service.baseUrl}/v1/models${query}`, { headers })).status
    t.equal(await list(bearer(key)), 200)
    t.equal(await list({ headers: { 'x-api-key': key } }), 200)
    t.equal(await list({ headers: { 'x-goog-api-key': key } }), 200)
    t.equal(await list({ query: `?key=${key}` }), 401)
    t.equal(await list({ headers: { 'x-partner-api-key': key } }), 401)
    t.equal((await fetch(`${service.baseUrl}/api/v1/models/public`)).status, 200, 'the public one takes none')
  })

  t.same(secretsIn(service, [key, unknown]), [], 'nothing secret was logged')
})
