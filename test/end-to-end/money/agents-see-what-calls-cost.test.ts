/**
 * A client sees what its call cost, limits what it may cost, and reads what its key and its session have spent. See
 * docs/api-rules.md, "The cost in an answer", "The highest price of a call" and "Balance and usage".
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { until } from '../../support/service.ts'
import { ask, configOf, simulated } from '../protocols/support.ts'
import { errorOf, eventsIn, rowOf, traceOf, upstreamCalls, upstreamRequest } from '../support.ts'

/** 100 prompt tokens at 1 credit and 10 of output at 2. */
const PLAIN = 'prompt_tokens=100,tokens=10'
const COST = 120
const UPSTREAMS = ['chat-completions', 'messages', 'generate-content'] as const
const INCLUDE = { usage: { include: true } }

interface Usage {
  readonly usage?: { readonly cost?: number; readonly prompt_tokens: number } | null
}

const unit = '1M_tokens'
const models = {
  ...Object.fromEntries(UPSTREAMS.map((upstream) => [upstream, {}])),
  failing: { fallbacks: ['dear', 'cheap'] as string[] },
  dear: { pricing: { unit, input: '100000000', output: '200000000' } },
  cheap: {},
  fast: {},
} as const
const channels = [
  simulated('chat-completions', {
    'chat-completions': `sim@${PLAIN}`,
    failing: 'sim@fault=status:503',
    dear: `sim@${PLAIN}`,
    cheap: `sim@${PLAIN}`,
  }),
  simulated('messages', { messages: `sim@${PLAIN}`, fast: `sim@${PLAIN},service_tier=fast` }),
  simulated('generate-content', { 'generate-content': `sim@${PLAIN}` }),
]

t.test('what agents see of money', async (t) => {
  const service = await borrowService(t, configOf(models, channels))

  for (const upstream of UPSTREAMS)
    for (const stream of [false, true])
      await t.test(`the cost in the usage, ${upstream}, ${stream ? 'streamed' : 'whole'}`, async (t) => {
        const { key } = await service.newKey('100000')
        const send = (more: object) => ask(service, key, 'chat-completions', upstream, { stream, more })
        const shown = await send(INCLUDE)
        const text = await shown.text()
        const found = (stream ? eventsIn(text).filter((event) => event !== '[DONE]') : [text])
          .map((json) => JSON.parse(json) as Usage)
          .filter(({ usage }) => usage != null)
        t.match(found, [{ usage: { prompt_tokens: 100, cost: COST } }], 'once, in credits')
        t.equal(found.length, 1)
        if (stream) t.equal(eventsIn(text).at(-1), '[DONE]')
        t.equal((await rowOf(service, key, traceOf(shown))).cost, String(COST))
        t.notMatch((await upstreamRequest(service, traceOf(shown))).body, /"usage"/)
        const plain = await send({ stream_options: { include_usage: true }, ...(!stream && { usage: {} }) })
        t.notMatch(await plain.text(), /"cost"/)
        const rows = await service.logs(key, (all) => all.length === 2)
        t.same(
          rows.map(({ cost }) => cost),
          [String(COST), String(COST)],
          'one row each',
        )
      })

  await t.test('an estimate above the highest price is refused, and reaches no upstream', async (t) => {
    const { key } = await service.newKey('100000')
    const limited = await service.newKey('100000', { maxPrice: 1_000_000_000n })
    const more = { max_tokens: 10 }
    const refusals = [
      ask(service, key, 'chat-completions', 'chat-completions', { more, headers: { 'x-max-price': '2.5' } }),
      ask(service, limited.key, 'chat-completions', 'chat-completions', { more }),
      // The smaller one counts.
      ask(service, limited.key, 'chat-completions', 'chat-completions', {
        more,
        headers: { 'x-max-price': '1000' },
      }),
    ]
    for (const [index, refused] of (await Promise.all(refusals)).entries()) {
      t.equal(refused.status, 400)
      const { code, message } = await errorOf(refused)
      t.equal(code, 'invalid_request')
      t.match(message, new RegExp(`up to \\d+ credits.*at most ${index === 0 ? '2\\.5' : '10'} are allowed`))
      t.same(await upstreamCalls(service, traceOf(refused)), [])
      t.match(await rowOf(service, index === 0 ? key : limited.key, traceOf(refused)), {
        status: 'rejected',
        cost: '0',
      })
    }
    for (const wrong of ['0', '-1', 'much', '1e3'])
      t.equal(
        (await ask(service, key, 'messages', 'messages', { headers: { 'x-max-price': wrong } })).status,
        400,
      )
    const allowed = await ask(service, key, 'chat-completions', 'chat-completions', {
      more,
      headers: { 'x-max-price': '1000' },
    })
    t.equal(allowed.status, 200)
  })

  await t.test('no model beyond the highest price serves in place of another', async (t) => {
    const { key } = await service.newKey('10000000')
    const answer = await ask(service, key, 'chat-completions', 'failing', {
      more: { max_tokens: 10, ...INCLUDE },
      headers: { 'x-max-price': '200' },
    })
    t.equal(answer.headers.get('x-served-model'), 'cheap')
    t.equal(((await answer.json()) as Usage).usage?.cost, COST)
    t.match(await rowOf(service, key, traceOf(answer)), { model: 'cheap', cost: String(COST) })
  })

  await t.test('what another model would bill is left out and named, the rest as it was', async (t) => {
    const { key } = await service.newKey('100000')
    const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'dear' }
    const own = { name: 'look', input_schema: { type: 'object' } }
    for (const padding of ['', 'x'.repeat(70_000)]) {
      const more = {
        system: padding,
        fallbacks: [{ model: 'dear' }],
        tools: [advisor, own],
        diagnostics: { previous_message_id: 'msg_1' },
      }
      const answer = await ask(service, key, 'messages', 'messages', { more })
      t.equal(answer.status, 200)
      t.equal(answer.headers.get('x-protocol-warning'), 'fallbacks; advisor')
      t.equal(answer.headers.get('x-protocol-translation'), null)
      const sent = JSON.parse((await upstreamRequest(service, traceOf(answer))).body)
      t.match(sent, { system: padding, diagnostics: { previous_message_id: 'msg_1' } })
      t.same(sent.tools, [own])
      t.notOk('fallbacks' in sent)
      t.equal((await rowOf(service, key, traceOf(answer))).cost, String(COST))
    }
    const only = await ask(service, key, 'messages', 'messages', { more: { tools: [own] } })
    t.equal(only.headers.get('x-protocol-warning'), null)
  })

  await t.test('a fast answer costs twice as much', async (t) => {
    const { key } = await service.newKey('100000')
    const answer = await ask(service, key, 'messages', 'fast', { more: { speed: 'fast' } })
    t.equal(answer.status, 200)
    t.match(await rowOf(service, key, traceOf(answer)), { cost: String(2 * COST) })
    t.equal((await service.logs(key, (rows) => rows.length > 0)).length, 1)
  })

  await t.test('a status line reads what is left, and what today and the session cost', async (t) => {
    const { key } = await service.newKey('100000')
    const headers = { 'session-id': 'morning' }
    await (await ask(service, key, 'messages', 'messages', { headers })).arrayBuffer()
    await (await ask(service, key, 'messages', 'messages')).arrayBuffer()
    const read = async (query = '') => service.get(key, `/v1/usage${query}`)
    await until('both are summed up', async () => {
      const { today } = (await (await read()).json()) as { today: { requests: number } }
      return today.requests === 2
    })
    const response = await read('?session_id=morning')
    t.equal(response.headers.get('x-ratelimit-limit'), '60')
    t.match(await response.json(), {
      object: 'key.usage',
      remaining: '99760',
      used: '240',
      today: { cost: '240', requests: 2, input_tokens: 200, output_tokens: 20 },
      session: { id: 'morning', cost: '120', requests: 1 },
    })
    t.match(await (await read('?session_id=evening')).json(), { session: { cost: '0', requests: 0 } })
    let refused = await read()
    for (let time = 0; time < 60 && refused.status === 200; time++) refused = await read()
    t.match(await errorOf(refused), { code: 'rate_limit_exceeded' })
    t.equal(
      (await ask(service, key, 'messages', 'messages')).status,
      200,
      'the limit of this endpoint does not count for calls',
    )
  })
})
