/** Tokens are counted where a native channel serves the model, in the two protocols that have a way to ask. */
import t from 'tap'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { balanceOf, post, traceOf, UPSTREAM_KEY, upstreamRequest } from '../support.ts'
import { checkRefused, configOf, ERRORS, passedThrough, simulated } from './support.ts'

const PATH = '/v1/messages/count_tokens'
const TOKENS = 321
const STATUSES = [400, 404, 413, 429, 500, 529]
const MODELS = {
  quoted: {},
  page: {},
  counted: { aliases: ['counted-2024'], max_output_tokens: 100 },
  translated: {},
  converted: {},
  served: {},
  unserved: {},
  ...Object.fromEntries(STATUSES.map((status) => [`status-${status}`, {}])),
}
const CHANNELS = [
  simulated('messages', {
    counted: `sim-counted@prompt_tokens=${TOKENS}`,
    ...Object.fromEntries(
      STATUSES.map((status) => [`status-${status}`, `sim-status@fault=status:${status},retry_after=9`]),
    ),
  }),
  simulated('generate-content', { translated: `sim-content@prompt_tokens=${TOKENS}` }),
  simulated('chat-completions', { converted: 'sim-any' }, { converts: ['messages'] }),
  simulated(
    'chat-completions',
    { served: 'sim-any' },
    { id: 'line-serving', converts: ['messages'], serve: ['messages'] },
  ),
]
const MESSAGES = '"messages" : [{"role":"user", "content":"h\\u00e9llo"}]'

/** An upstream that quotes the key and the model that it is shown, or answers with a page. */
const quoting = await serveHttp(t, async (request, response) => {
  const { model } = JSON.parse(await textOf(request))
  const message = `Key ${request.headers['x-api-key']} may not count for ${model}.`
  if (model === 'upstream-page') response.end('<html>busy</html>')
  else response.writeHead(400).end(JSON.stringify({ error: { message } }))
})
const CONFIG = configOf(MODELS, [
  ...CHANNELS,
  {
    ...simulated('messages', { quoted: 'upstream-name', page: 'upstream-page' }),
    id: `quoting-${process.pid}`,
    base_url: quoting,
    api_key: UPSTREAM_KEY,
  },
])

t.test('count_tokens', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key, accountId } = await service.newKey('1')

  await t.test('passes through, but for the name of the model', async (t) => {
    for (const model of ['counted', 'counted-2024']) {
      const body = `{"system":"be brief",  ${MESSAGES},\n"model": "${model}" }`
      const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'counting-2024-11-01' }
      const response = await post(service, key, PATH, body, headers)
      t.equal(response.status, 200)
      t.same(await response.json(), { input_tokens: TOKENS })
      t.match(response.headers.get('content-type'), /^application\/json/)
      const seen = await upstreamRequest(service, traceOf(response))
      t.equal(seen.body, body.replace(`"${model}"`, `"sim-counted@prompt_tokens=${TOKENS}"`))
      for (const [name, value] of Object.entries(headers)) t.equal(seen.headers.get(name), value)
    }
  })

  await t.test('shows no key and no model of the upstream, and no page of its', async (t) => {
    const quoted = await post(service, key, PATH, `{"model":"quoted",${MESSAGES}}`)
    t.equal(quoted.status, 400)
    t.match(await quoted.json(), { error: { message: 'Key [secret] may not count for [upstream].' } })
    const page = await post(service, key, PATH, `{"model":"page",${MESSAGES}}`)
    t.equal(page.status, 502)
    t.notMatch(await page.text(), /html/)
  })

  await t.test('is estimated for a channel that converts and cannot count', async (t) => {
    const estimated = await post(service, key, PATH, `{"model":"served",${MESSAGES}}`)
    t.match(estimated.headers.get('x-protocol-warning'), /estimate/)
    t.match(await estimated.json(), { input_tokens: Number })
  })

  await t.test('of the generate-content protocol', async (t) => {
    const contents = [{ role: 'user', parts: [{ text: 'héllo' }] }]
    const count = (raw: string, model: string, body: object) =>
      post(service, raw, `/v1beta/models/${model}countTokens`, body)
    const bodies = [{ contents }, { generateContentRequest: { model: 'models/translated', contents } }]
    for (const body of bodies)
      for (const model of ['translated:', 'translated%3A']) {
        const response = await count(key, model, body)
        t.equal(response.status, 200)
        t.match(await response.json(), { totalTokens: TOKENS })
        const seen = await upstreamRequest(service, traceOf(response))
        t.equal(
          seen.body,
          JSON.stringify(body).replace('models/translated', `models/sim-content@prompt_tokens=${TOKENS}`),
        )
      }
    const is = (response: Response, named: (typeof ERRORS)[keyof typeof ERRORS], message?: RegExp) =>
      checkRefused(t, response, 'generate-content', named, message)
    await is(await count(key, 'unheard-of:', { contents }), ERRORS.modelNotFound)
    for (const model of ['unserved', 'counted', 'converted'])
      await is(await count(key, `${model}:`, { contents }), ERRORS.noChannel, new RegExp(model))
    t.equal((await count((await service.newKey('0')).key, 'translated:', { contents })).status, 200)
    await is(await count('sk-nobody', 'translated:', { contents }), ERRORS.invalidApiKey)
    await is(await count(key, 'translated:', {}), ERRORS.invalidRequest, /'contents'/)
    await is(await count(key, 'translated:embed', {}), ERRORS.notFound)
  })

  await t.test('is refused in the shape of its protocol', async (t) => {
    const count = (raw: string, model: string) => post(service, raw, PATH, `{"model":"${model}",${MESSAGES}}`)
    const is = (response: Response, named: (typeof ERRORS)[keyof typeof ERRORS], message?: RegExp) =>
      checkRefused(t, response, 'messages', named, message)
    await is(await count(key, 'unheard-of'), ERRORS.modelNotFound)
    for (const model of ['unserved', 'translated', 'converted'])
      await is(await count(key, model), ERRORS.noChannel, new RegExp(model))
    const narrow = await service.database.keys.create({
      name: 'narrow',
      accountId,
      allowedModels: ['unserved'],
    })
    await is(await count(narrow.raw, 'counted'), ERRORS.modelNotAllowed)
    t.equal((await count((await service.newKey('0')).key, 'counted')).status, 200, 'counting is free')
    await is(await count('sk-nobody', 'counted'), ERRORS.invalidApiKey)
    const invalid: readonly (readonly [body: string, message: RegExp])[] = [
      ['', /empty/],
      ['{"model":"counted"', /JSON/],
      [`{${MESSAGES}}`, /'model'/],
      ['{"model":"counted"}', /'messages'/],
      [`{"model":"counted","model":"status-500",${MESSAGES}}`, /'model' .*more than once|'model'/],
      [`{"model":"counted",${MESSAGES},"system":7}`, /'system'/],
    ]
    for (const [body, message] of invalid)
      await is(await post(service, key, PATH, body), ERRORS.invalidRequest, message)
    // The bytes of UTF-8, as some clients send them.
    const headers = { 'anthropic-beta': Buffer.from('counting-✓-2024').toString('latin1') }
    const body = `{"model":"counted","max_tokens":9,${MESSAGES}}`
    for (const path of [PATH, '/v1/messages'])
      await is(await post(service, key, path, body, headers), ERRORS.invalidRequest, /anthropic-beta/)
    const get = await service.get(key, PATH)
    await is(get, ERRORS.methodNotAllowed)
  })

  await t.test("passes the upstream's own refusals", async (t) => {
    for (const status of STATUSES) {
      const response = await post(service, key, PATH, `{"model":"status-${status}",${MESSAGES}}`)
      await checkRefused(t, response, 'messages', passedThrough(status, '', ''), /^[^{}]*simulat[^{}]*$/i)
      t.equal(response.headers.get('retry-after'), '9')
    }
  })

  await t.test('costs nothing and leaves no row', async (t) => {
    t.match(await balanceOf(service, key), { remaining: '1', used: '0' })
    // Rows come in order: what was there to be booked stands before this one.
    const call = { model: 'counted', max_tokens: 9_999_999, messages: [{ role: 'user', content: 'hi' }] }
    t.equal((await post(service, key, '/v1/messages', call)).status, 402)
    const rows = await service.logs(key, ([last]) => last?.error_code === 'quota_exceeded')
    const [, header, ...others] = rows
    t.equal(header?.error_code, 'invalid_request', 'of the call of messages with a header that is no text')
    t.same(others, [])
  })
})
