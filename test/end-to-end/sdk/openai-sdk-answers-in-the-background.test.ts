/** Responses that are made in the background, and conversations, as the openai SDK uses them. */
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { eventually, until } from '../../support/eventually.ts'
import { sendJson, serveHttp } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { Books, configOf, simulated } from '../protocols/support.ts'
import { balanceOf, errorOf, post, traceOf, UPSTREAM_KEY, upstreamCalls } from '../support.ts'
import { asking } from './support.ts'

const KEEPING = { keeps_responses_days: 30, keeps_conversations: true }
const configWith = (searcherUrl: string) =>
  configOf({ kept: {}, forgotten: {}, searching: {} }, [
    simulated('responses', { kept: 'sim-kept' }, { ...KEEPING, id: 'keeping' }),
    simulated('responses', { forgotten: 'sim-forgetful' }, { id: 'forgetting' }),
    {
      ...{ id: 'searcher', provider: 'xai', protocol: 'responses', base_url: `${searcherUrl}/v1` },
      ...{ api_key: UPSTREAM_KEY, models: { searching: 'grok' } },
    },
  ])
const PATH = '/v1/responses'
const NOT_FOUND = { status: 404, message: /There is no/ }
const user = (content: string) => [{ role: 'user' as const, content }]

const SEARCHED = {
  ...{ id: 'resp_searched', object: 'response', model: 'grok', background: true },
  output: [{ type: 'custom_tool_call', name: 'x_keyword_search', id: 'ctc_1', call_id: 'xs_1' }],
  usage: {
    ...{ input_tokens: 100, output_tokens: 20, total_tokens: 120 },
    server_side_tool_usage_details: { web_search_calls: 1, x_search_calls: 2, x_posts_fetched: 90 },
  },
}

/** A provider whose answer is done when it is asked for, with searches that xAI alone reports so. */
const searcher = (t: Test) =>
  serveHttp(t, ({ method }, response) => {
    sendJson(response, 200, { ...SEARCHED, status: method === 'POST' ? 'queued' : 'completed' })
  })

t.test('in the background', async (t) => {
  const service = await borrowService(t, configWith(await searcher(t)))
  const books = await Books.open(service)
  const { key } = books
  const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey, maxRetries: 0 })
  const client = clientOf(key)
  const stranger = clientOf((await service.newKey('1000')).key)
  const begin = async (directives: string, more: object = {}) => {
    const { data, response } = await client.responses
      .create({
        model: 'kept',
        input: user(asking(directives)),
        background: true,
        max_output_tokens: 64,
        ...more,
      })
      .withResponse()
    return { begun: data, requestId: response.headers.get('x-gateway-trace') }
  }
  const heldNow = async () => (await balanceOf(service, key)).held
  const ended = (id: string) =>
    eventually(`${id} ends`, async () => {
      const response = await client.responses.retrieve(id)
      return response.status === 'queued' || response.status === 'in_progress' ? undefined : response
    })
  const told = ({ usage }: OpenAI.Responses.Response) => ({
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
  })

  await t.test('an answer is polled to its end, and charged once', async (t) => {
    const { begun, requestId } = await begin('tokens=9,delay=600000')
    t.match(begun, { object: 'response', background: true, status: /^(queued|in_progress)$/ })
    t.not(await heldNow(), '0', 'its estimate is held')
    const jobs = `${service.engines.simulatorUrl}/simulator/tasks`
    const job = await eventually('its provider has it', async () => {
      const [first] = (await (await fetch(`${jobs}?model=sim-kept`)).json()) as { id: string }[]
      return first
    })
    await fetch(`${jobs}/${job.id}/end`, { method: 'POST' })
    const response = await ended(begun.id)
    t.match(response, { status: 'completed', usage: { output_tokens: 9 } })
    t.ok(response.output_text)
    await books.charged(requestId, told(response), { unit_type: null, task_id: /^resp_/ })
    t.equal(await heldNow(), '0')
    const next = await client.responses
      .create({ model: 'kept', input: user('go on'), previous_response_id: begun.id })
      .withResponse()
    await books.charged(next.response.headers.get('x-gateway-trace'), told(next.data))
    const [item] = response.output
    const reference = { type: 'item_reference' as const, id: item?.id ?? 'none' }
    const naming = (by: OpenAI) =>
      by.responses.create({ model: 'kept', input: [reference, ...user('go on')] }).withResponse()
    const named = await naming(client)
    await books.charged(named.response.headers.get('x-gateway-trace'), told(named.data))
    await t.rejects(naming(stranger), NOT_FOUND)
    const items = await client.responses.inputItems.list(begun.id)
    t.match(items.data, [{ role: 'user' }])
    await t.rejects(stranger.responses.retrieve(begun.id), NOT_FOUND)
    await t.rejects(stranger.responses.cancel(begun.id), NOT_FOUND)
    await t.rejects(stranger.responses.delete(begun.id), NOT_FOUND)
    await client.responses.delete(begun.id)
    await t.rejects(client.responses.retrieve(begun.id), NOT_FOUND)
    const gone = await naming(client).catch((error: InstanceType<typeof OpenAI.NotFoundError>) => error)
    t.match(gone, NOT_FOUND)
    books.free((gone as InstanceType<typeof OpenAI.NotFoundError>).headers.get('x-gateway-trace'), {})
  })

  await t.test('searches cost what xAI reports of them in its own form', async (t) => {
    const { begun, requestId } = await begin('', { model: 'searching' })
    t.match(await ended(begun.id), { status: 'completed' })
    await books.charged(requestId, { input: 100, output: 20, serverToolCalls: 3 })
  })

  await t.test('a picture in a request whose answer has no usage counts as one given by URL', async (t) => {
    const base64 = 'A'.repeat(40_000)
    const picture = { type: 'input_image', image_url: `data:image/png;base64,${base64}`, detail: 'auto' }
    const content = [{ type: 'input_text', text: asking('usage=none,text=Blue') }, picture]
    const input = [{ role: 'user', content }]
    const { begun, requestId } = await begin('', { input })
    t.match(await ended(begun.id), { status: 'completed' })
    const text = Math.ceil((JSON.stringify(input).length - picture.image_url.length) / 4)
    await books.charged(requestId, { input: text + 1600, output: 1 })
  })

  await t.test('one that is cancelled costs what its upstream reports', async (t) => {
    const { begun, requestId } = await begin('tokens=30,delay=600000,queue=0')
    await t.rejects(client.responses.delete(begun.id), { status: 400, message: /still being made/ })
    const cancelled = await client.responses.cancel(begun.id)
    t.match(cancelled, { status: 'cancelled', usage: { output_tokens: 15 } })
    await books.charged(requestId, told(cancelled), { status: 'error', error_code: 'task_cancelled' })
    t.equal(await heldNow(), '0')
    t.match(await client.responses.cancel(begun.id), { status: 'cancelled' }, 'a second time says the same')
    await client.responses.delete(begun.id)
  })

  await t.test('one that fails is free unless its upstream reports usage', async (t) => {
    const free = await begin('outcome=fail,delay=0')
    t.match(await ended(free.begun.id), { status: 'failed', error: { code: 'server_error' } })
    await until('it is refunded', async () => (await heldNow()) === '0')
    books.free(free.requestId, { status: 'error', error_code: 'server_error' })
    const paid = await begin('outcome=fail,delay=0,usage=always,tokens=5')
    const response = await ended(paid.begun.id)
    await books.charged(paid.requestId, told(response), { status: 'error' })
  })

  await t.test('what an upstream refuses is refused with its words', async (t) => {
    const refused = await post(service, key, PATH, {
      ...{ model: 'kept', background: true, input: asking('outcome=refuse'), max_output_tokens: 64 },
    })
    t.equal(refused.status, 400)
    t.match(await errorOf(refused), { message: /refused: simulated/ })
    books.free(traceOf(refused), { error_code: 'invalid_request' })
    t.equal(await heldNow(), '0')
  })

  await t.test('a submit without an answer is an error, and is not sent again', async (t) => {
    const lost = await begin('accept_then_cut,tag=lost').catch((error: unknown) => error)
    t.match(lost, { status: 502, code: 'upstream_unreachable' })
    const { headers } = lost as InstanceType<typeof OpenAI.APIError>
    books.free(headers?.get('x-gateway-trace'), { status: 'error', error_code: 'upstream_unreachable' })
    t.equal(await heldNow(), '0')
    const calls = await upstreamCalls(service)
    t.equal(calls.filter(({ path, state }) => path === PATH && state === 'faulted').length, 1)
  })

  await t.test('what cannot be done is refused with the reason', async (t) => {
    const body = { model: 'kept', input: 'hi', background: true }
    const cases: readonly (readonly [object, RegExp])[] = [
      [{ stream: true }, /background: an answer in the background is not streamed/],
      [{ store: false }, /background: the answer has to be kept/],
      [{ model: 'forgotten' }, /background: no channel of the model 'forgotten' keeps responses/],
      [{ background: false, callback_url: 'https://example.com/' }, /callback_url: it tells the end/],
      [{ conversation: 'conv_1', previous_response_id: 'resp_1' }, /conversation: it cannot be combined/],
    ]
    for (const [more, message] of cases) {
      const response = await post(service, key, PATH, { ...body, ...more })
      t.equal(response.status, 400)
      t.match(await errorOf(response), { code: 'invalid_request', message })
      books.free(traceOf(response), { status: 'rejected' })
    }
    const waited = await client.responses.create({ model: 'kept', input: user('wait') }).withResponse()
    await books.charged(waited.response.headers.get('x-gateway-trace'), told(waited.data))
    await t.rejects(client.responses.cancel(waited.data.id), { status: 400, message: /synchronous/ })
    const poor = await service.newKey('10')
    const tooDear = await post(service, poor.key, PATH, { ...body, max_output_tokens: 1000 })
    t.equal(tooDear.status, 402)
  })

  await t.test('one intent makes one response', async (t) => {
    const headers = { 'idempotency-key': 'once' }
    const body = { model: 'kept', background: true, max_output_tokens: 64, input: asking('tokens=4,delay=0') }
    const first = await post(service, key, PATH, body, headers)
    const again = await post(service, key, PATH, body, headers)
    const { id } = (await first.json()) as { id: string }
    t.match(await again.json(), { id })
    await books.charged(traceOf(first), told(await ended(id)))
  })

  await t.test('what its own hold leaves does not refuse a repeated request', async (t) => {
    const poor = await service.newKey('200')
    const input = asking('tokens=4,delay=0,ttft=2000')
    const body = { model: 'kept', background: true, max_output_tokens: 64, input }
    const headers = { 'idempotency-key': 'cut' }
    const cut = new AbortController()
    const lost = post(service, poor.key, PATH, body, headers, cut.signal).catch(() => null)
    await until('it is held', async () => (await balanceOf(service, poor.key)).held !== '0')
    cut.abort()
    await lost
    t.equal((await post(service, poor.key, PATH, body)).status, 402)
    const repeated = await eventually('the key is free', async () => {
      const response = await post(service, poor.key, PATH, body, headers)
      return response.status === 409 ? undefined : response
    })
    t.match(await repeated.json(), { object: 'response', background: true })
  })

  await t.test('a conversation is kept at one channel, and read again by each answer in it', async (t) => {
    const begun = await client.conversations.create({
      items: [{ type: 'message', role: 'user', content: 'My name is Ada.' }],
      metadata: { topic: 'names' },
    })
    t.match(begun, { id: /^conv_/, metadata: { topic: 'names' } })
    const body = { model: 'kept', input: user(asking('tokens=5')), conversation: begun.id }
    let inputTokens = 0
    for (const conversation of [begun.id, { id: begun.id }]) {
      const { data, response } = await client.responses.create({ ...body, conversation }).withResponse()
      t.match(data, { conversation: { id: begun.id } })
      t.ok((data.usage?.input_tokens ?? 0) > inputTokens)
      inputTokens = data.usage?.input_tokens ?? 0
      await books.charged(response.headers.get('x-gateway-trace'), told(data))
    }
    const { begun: later, requestId } = await begin('tokens=3,delay=0', { conversation: begun.id })
    await books.charged(requestId, told(await ended(later.id)))
    const items = await client.conversations.items.list(begun.id, { order: 'asc' })
    t.equal(items.data.length, 1 + 2 * 3)
    const added = await client.conversations.items.create(begun.id, { items: user('More.') })
    const item = added.data[0]?.id ?? ''
    t.match(await client.conversations.items.retrieve(item, { conversation_id: begun.id }), { id: item })
    await client.conversations.items.delete(item, { conversation_id: begun.id })
    t.match(await client.conversations.update(begun.id, { metadata: { topic: 'cats' } }), {
      metadata: { topic: 'cats' },
    })
    t.match(await client.conversations.retrieve(begun.id), { metadata: { topic: 'cats' } })

    await t.rejects(stranger.conversations.retrieve(begun.id), NOT_FOUND)
    await t.rejects(stranger.conversations.items.list(begun.id), NOT_FOUND)
    await t.rejects(stranger.conversations.delete(begun.id), NOT_FOUND)
    await t.rejects(stranger.responses.create({ ...body }), NOT_FOUND)
    const elsewhere = await post(service, key, PATH, { ...body, model: 'forgotten' })
    t.equal(elsewhere.status, 400)
    t.match(await errorOf(elsewhere), { message: /conversation: no channel of the model 'forgotten' keeps/ })
    books.free(traceOf(elsewhere), { status: 'rejected' })
    const unable = await post(service, key, '/v1/conversations', { model: 'forgotten' })
    t.equal(unable.status, 400)
    t.match(await errorOf(unable), { message: /No channel that this key may use keeps conversations/ })
    const foreign = await post(service, key, '/v1/conversations', {
      items: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }],
    })
    t.equal(foreign.status, 400)
    await client.conversations.delete(begun.id)
    await t.rejects(client.conversations.retrieve(begun.id), NOT_FOUND)
  })

  await t.test('the estimate counts what a conversation holds', async (t) => {
    const poor = await service.newKey('3000')
    const own = clientOf(poor.key)
    const begun = await own.conversations.create({ items: user('a long story '.repeat(1200)) })
    const body = { model: 'kept', input: 'hi', conversation: begun.id, max_output_tokens: 16 }
    t.equal((await post(service, poor.key, PATH, body)).status, 402)
    t.equal((await post(service, poor.key, PATH, { ...body, conversation: undefined })).status, 200)
  })

  await books.close(t)
})
