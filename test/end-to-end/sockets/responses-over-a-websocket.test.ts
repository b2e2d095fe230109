/** Responses over WebSocket: each message is a call like any other. See docs/api-rules.md, "Responses over WebSocket". */
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, until } from '../../support/service.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { asking, PLACE_SCHEMA, TOOL_NAMES } from '../sdk/support.ts'
import { checkCharges, post, receivedIn, upstreamCalls } from '../support.ts'
import { askUpgrade, connect, type Message, PATH, type SocketClient } from './support.ts'

const capabilities = { function_tools: true, reasoning: true }
const CONFIG = configOf(
  {
    plain: { capabilities },
    translated: { capabilities },
    kept: {},
    cut: {},
    errs: {},
    slow: { after_client_leaves: 'abort' },
  },
  [
    simulated('responses', {
      plain: 'sim-one@tokens=8',
      cut: 'sim-cut@tokens=400,fault=reset:6001',
      errs: 'sim-errs@tokens=40,fault=stream_error:4',
      slow: 'sim-slow@tokens=2000,tps=50',
    }),
    simulated('responses', { kept: 'sim-kept@tokens=8' }, { id: 'keeping', keeps_responses_days: 30 }),
    simulated('chat-completions', { translated: 'sim-two@tokens=8' }, { serve: ['responses'] }),
  ],
)
const SETTLED_MS = 300
const MAX_CONNECTIONS = 256
const TOOLS = TOOL_NAMES.map((name) => ({
  type: 'function' as const,
  name,
  parameters: { ...PLACE_SCHEMA },
  strict: true,
}))
const user = (content: string) => ({ role: 'user' as const, content })
const textIn = (messages: readonly Message[]): string =>
  messages.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('')
const readCode = ({ error }: Message): string | undefined => error?.code

t.test('responses over a WebSocket', async (t) => {
  const service = await borrowService(t, CONFIG)
  const newKey = async (credit = '1000000') => (await service.newKey(credit)).key
  const rows = (key: string, count: number) => service.logs(key, (found) => found.length >= count)
  /** Bodies that upstreams got of the calls of a key, oldest first. */
  const sentFor = async (key: string, count: number) => {
    const ids = (await rows(key, count)).map(({ request_id }) => request_id)
    const calls = (await Promise.all(ids.map((id) => upstreamCalls(service, id)))).flat()
    const bodies = calls.sort((a, b) => a.id - b.id).map((call) => receivedIn(service, call))
    return (await Promise.all(bodies)).map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  }
  await t.test('messages are the events of a stream, one by one', async (t) => {
    const key = await newKey()
    const body = { model: 'plain', input: [user('hi')], store: false }
    const stream = await (await post(service, key, PATH, { ...body, stream: true })).text()
    const events = stream.split('\n').filter((line) => line.startsWith('data: '))
    const client = await connect(t, service, key)
    const messages = await client.create(body).answer()
    t.strictSame(
      messages,
      events.map((event) => JSON.parse(event.slice('data: '.length))),
    )
    const [streamed, messaged] = await checkCharges(t, service, key, 2)
    t.equal(streamed?.cost, messaged?.cost)
    t.match(messaged, { status: 'success', model: 'plain' })
  })

  for (const model of ['plain', 'translated'])
    await t.test(`a loop of tools on one connection, ${model}`, async (t) => {
      const key = await newKey()
      const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: key })
      const socket = new ResponsesWS(client)
      t.teardown(() => socket.close())
      const stream = socket.stream()
      const finished = async () => {
        for (;;) {
          const { value: event, done } = await stream.next()
          if (done === true) throw new Error('the connection was closed')
          if (event.type === 'error') throw event.error
          if (event.type === 'message' && event.message.type === 'response.completed')
            return event.message.response
        }
      }
      const create = (input: object[], previous: string | null) =>
        socket.send({
          ...{ type: 'response.create', model, store: false, tools: TOOLS, input: input as never },
          ...(previous !== null && { previous_response_id: previous }),
        } as never)
      let input: object[] = [user(asking('tool_calls=2, reasoning=8, reasoning_text'))]
      let previous: string | null = null
      for (let turn = 0; turn < 2; turn++) {
        create(input, previous)
        const response: OpenAI.Responses.Response = await finished()
        previous = response.id
        const calls = response.output.filter((item) => item.type === 'function_call')
        t.equal(calls.length, 2)
        input = [
          ...calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'sunny' })),
          user(asking(turn === 0 ? 'tool_calls=2' : 'tokens=3')),
        ]
      }
      create(input, previous)
      t.match(await finished(), { status: 'completed', output: [{ type: 'message' }] })
      await checkCharges(t, service, key, 3)
      const sent = await sentFor(key, 3)
      t.equal(sent.length, 3)
      for (const body of sent) t.notOk('previous_response_id' in body || 'type' in body)
      const lengths = sent.map((body) => ((body.input ?? body.messages) as unknown[]).length)
      t.same(
        lengths,
        [...lengths].sort((a, b) => a - b),
        'each turn has all that was said before',
      )
    })

  await t.test('a response that its channel keeps is asked for there', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    const first = (await client.create({ model: 'kept', input: 'hi' }).last()).response!
    const next = { model: 'kept', input: 'go on', previous_response_id: first.id }
    t.match(await client.create(next).last(), { response: { previous_response_id: first.id } })
    const other = await connect(t, service, key)
    t.match(await other.create(next).last(), { response: { previous_response_id: first.id } })
    const sent = await sentFor(key, 3)
    t.same(
      sent.map(({ previous_response_id }) => previous_response_id),
      [undefined, first.id, first.id],
    )
  })

  await t.test('a warm-up calls no upstream, costs nothing, and is gone on with', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    const input = [user('what is known before')]
    const warm = await client.create({ model: 'plain', input, store: false, generate: false }).answer()
    t.same(
      warm.map(({ type }) => type),
      ['response.created', 'response.completed'],
    )
    const { id } = warm[0]!.response!
    t.match(warm[1], { response: { id, output: [], usage: { total_tokens: 0 } } })
    const turn = { model: 'plain', store: false, previous_response_id: id, input: [] }
    t.match(await client.create(turn).last(), { type: 'response.completed' })
    const [sent] = await sentFor(key, 1)
    t.same(sent?.input, input)
    t.notOk('generate' in sent!)
    await checkCharges(t, service, key, 1)
  })

  await t.test('what is refused is an error message, and the connection stays', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key, { 'idempotency-key': 'one-for-all' })
    const refused = async (message: object | string, status: number, code: string) => {
      const last = await client.send(message).last()
      t.match(last, { type: 'error', status, error: { code, message: /\S/ } }, code)
      t.match(last.headers, { 'x-gateway-trace': /^req_/ })
    }
    const create = { type: 'response.create', model: 'plain', input: 'hi', store: false }
    await refused('not json', 400, 'invalid_request')
    await refused('{"type":"response.create","model":"plain"', 400, 'invalid_request')
    await refused({ type: 'response.cancel' }, 400, 'invalid_request')
    await refused({ ...create, input: [[]] }, 400, 'invalid_request')
    await refused({ ...create, stream_id: 'a' }, 400, 'invalid_request')
    await refused({ ...create, background: true, store: true }, 400, 'invalid_request')
    await refused({ ...create, model: 'unheard-of' }, 400, 'model_not_found')
    await refused({ ...create, input: 'x '.repeat(5 * 1024 * 1024) }, 413, 'request_too_large')
    await refused({ ...create, previous_response_id: 'resp_none' }, 400, 'previous_response_not_found')
    await refused(
      { ...create, model: 'kept', previous_response_id: 'resp_none' },
      400,
      'previous_response_not_found',
    )
    client.send({ type: 'response.processed', response_id: 'resp_none' })
    for (const content of ['one', 'two'])
      t.match(await client.send({ ...create, input: content }).last(), { type: 'response.completed' })
    const isSuccess = ({ status }: { readonly status: string }) => status === 'success'
    const found = await service.logs(key, (seen) => seen.filter(isSuccess).length >= 2)
    t.equal(found.filter(isSuccess).length, 2, 'an Idempotency-Key of the upgrade makes no two calls one')
  })

  await t.test('an empty wallet is an error message', async (t) => {
    const client = await connect(t, service, await newKey('1'))
    t.match(await client.create({ model: 'plain', input: 'hi there' }).last(), {
      type: 'error',
      status: 402,
      error: { code: 'quota_exceeded', type: 'insufficient_quota' },
    })
  })

  await t.test('after a failure the response before it is forgotten', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    const body = { model: 'plain', store: false, input: 'hi' }
    const { id } = (await client.create(body).last()).response!
    const next = { ...body, previous_response_id: id }
    t.match(await client.create({ ...next, temperature: 'hot' }).last(), { status: 400 })
    t.equal(readCode(await client.create(next).last()), 'previous_response_not_found')
    t.match(await client.create(body).last(), { type: 'response.completed' })
  })

  await t.test('a stream that breaks, or reports an error, is an error message', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    const broken = await client.create({ model: 'cut', input: 'hi' }).answer()
    t.ok(textIn(broken))
    t.match(broken.at(-1), { type: 'error', status: 502, error: { code: 'upstream_error' } })
    const reported = await client.create({ model: 'errs', input: 'hi' }).answer()
    t.match(reported.at(-1), { type: 'error', status: 502, error: { code: 'server_error' } })
    t.match(await client.create({ model: 'plain', input: 'hi' }).last(), { type: 'response.completed' })
    const found = await checkCharges(t, service, key, 3)
    t.same(
      found.map(({ status }) => status),
      ['success', 'error', 'error'],
    )
  })

  await t.test('calls run one after the other; too many that wait are refused', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    const models = ['slow', ...Array.from({ length: 17 }, () => 'plain')]
    for (const model of models) client.create({ model, input: `[simulate: tokens=20]`, store: false })
    t.match(await client.last(), { type: 'error', status: 429, error: { code: 'rate_limit_exceeded' } })
    for (let call = 0; call < 17; call++) t.match(await client.last(), { type: 'response.completed' })
    const found = await checkCharges(t, service, key, 17)
    t.equal(found.at(-1)?.model, 'slow', 'the first to be asked is the first to be made')
  })

  await t.test('a client that leaves ends its call, which is charged for what was said', async (t) => {
    const key = await newKey()
    const client = await connect(t, service, key)
    client.create({ model: 'slow', input: 'hi' }).create({ model: 'plain', input: 'never made' })
    await until('it says something', () => textIn(client.received) !== '')
    client.close()
    const [row] = await checkCharges(t, service, key, 1)
    t.match(row, { status: 'interrupted', model: 'slow' })
    t.ok(row!.output_tokens > 0 && row!.output_tokens < 2000)
    const [call] = await upstreamCalls(service, row!.request_id)
    t.equal(call?.state, 'client_closed')
    await sleep(SETTLED_MS)
    t.equal((await rows(key, 1)).length, 1, 'what waited is not made')
  })

  await t.test('a key may have so many connections, in each process', async (t) => {
    const { key } = await service.newKey('1000000')
    const bearer = { authorization: `Bearer ${key}` }
    const clients: SocketClient[] = []
    while (clients.length < MAX_CONNECTIONS) clients.push(await connect(t, service, key))
    t.match(await askUpgrade(service, bearer), { status: 426, body: /rate_limit_exceeded/ })
    t.equal((await askUpgrade(service, { authorization: `Bearer ${await newKey()}` })).status, 101)
    for (const client of clients) client.close()
    await until('they are closed', async () => (await askUpgrade(service, bearer)).status === 101)
  })

  await t.test('calls count towards the limits of their key', async (t) => {
    const { key } = await service.newKey('1000000', { concurrency: 1 })
    const [busy, other] = [await connect(t, service, key), await connect(t, service, key)]
    busy.create({ model: 'slow', input: 'hi', store: false })
    await until('it says something', () => textIn(busy.received) !== '')
    const refused = await other.create({ model: 'plain', input: 'hi', store: false }).last()
    t.match(refused, { status: 429, error: { code: 'rate_limit_exceeded' } })
    t.match(refused.headers, { 'retry-after': /\d/, 'x-ratelimit-limit-concurrency': '1' })
    busy.close()
    await until('its slot is free', async () => {
      const { type } = await other.create({ model: 'plain', input: 'hi', store: false }).last()
      return type === 'response.completed'
    })
  })

  await t.test('an upgrade is refused with a plain status', async (t) => {
    const { key, keyId } = await service.newKey('1000000')
    const bearer = { authorization: `Bearer ${key}` }
    t.match(await askUpgrade(service, {}), { status: 401, body: /invalid_api_key/ })
    t.match(await askUpgrade(service, { authorization: 'Bearer sk-tollgate-no' }), { status: 401 })
    t.equal((await askUpgrade(service, bearer)).status, 101, 'without the OpenAI-Beta header too')
    t.equal((await askUpgrade(service, { 'x-api-key': key })).status, 101)
    t.equal((await askUpgrade(service, { ...bearer, 'sec-websocket-key': 'short' })).status, 426)
    t.equal((await askUpgrade(service, bearer, '/v1/chat/completions')).status, 426)
    t.equal((await fetch(`${service.baseUrl}${PATH}`, { headers: bearer })).status, 405)
    const client: SocketClient = await connect(t, service, key)
    await service.database.keys.revoke(keyId)
    const last = await eventually('the key is known to be revoked', async () => {
      const message = await client.create({ model: 'plain', input: 'hi' }).last()
      return message.type === 'error' ? message : undefined
    })
    t.match(last, { status: 401, error: { code: 'invalid_api_key' } })
  })
})
