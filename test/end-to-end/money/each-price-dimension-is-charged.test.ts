/**
 * Each kind of tokens, service tier, tool and minimum has its price from the request to the row, streamed and whole, and
 * usage that contradicts itself bills no more than what was delivered. See docs/pricing.md.
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { ask, type ChatProtocol, configOf, simulated } from '../protocols/support.ts'
import { balanceOf, rowOf, traceOf, upstreamRequest } from '../support.ts'

const PRICES = {
  unit: '1M_tokens',
  ...{ input: '1000000', output: '2000000', cached_input: '100000' },
  ...{ reasoning: '3000000', input_audio: '4000000', output_audio: '5000000', output_image: '7000000' },
  ...{ input_image: '6000000', server_tool_call: '5', server_tools: { web_search: '9' } },
  service_tiers: { flex: '0.5', priority: '2' },
} as const

interface Case {
  readonly upstream: ChatProtocol
  readonly simulate: string
  /** Credits. */
  readonly cost: string
  /** A line of the detail that explains it. */
  readonly line: readonly [name: string, value: string]
  readonly more?: object
}

/** 100 prompt tokens at 1 credit and 10 of output at 2, unless said. */
const BASE = 'prompt_tokens=100,tokens=10'
const CASES: Readonly<Record<string, Case>> = {
  'write-1h': {
    upstream: 'messages',
    simulate: `${BASE},cache_write=60,cache_write_1h=40`,
    // 40 x 1 + 20 x 1.25 + 40 x 2 + 10 x 2
    cost: '165',
    line: ['charge_cache_write_1h', '40 tokens x 2000000 per 1M = 80'],
  },
  reasoning: {
    upstream: 'responses',
    simulate: `${BASE},reasoning=5`,
    // 100 x 1 + 10 x 2 + 5 x 3
    cost: '135',
    line: ['charge_reasoning', '5 tokens x 3000000 per 1M = 15'],
  },
  audio: {
    upstream: 'generate-content',
    simulate: `${BASE},input_audio=30,output_audio=4`,
    // 70 x 1 + 30 x 4 + 6 x 2 + 4 x 5
    cost: '222',
    line: ['charge_input_audio', '30 tokens x 4000000 per 1M = 120'],
  },
  image: {
    upstream: 'chat-completions',
    simulate: `${BASE},input_image=20,output_image=3`,
    // 80 x 1 + 20 x 6 + 7 x 2 + 3 x 7
    cost: '235',
    line: ['charge_output_image', '3 tokens x 7000000 per 1M = 21'],
  },
  flex: {
    upstream: 'chat-completions',
    simulate: `${BASE},service_tier=flex`,
    // (100 x 1 + 10 x 2) x 0.5
    cost: '60',
    line: ['price_service_tier', 'flex: x 0.5'],
    more: { service_tier: 'flex' },
  },
  'not-as-asked': {
    upstream: 'chat-completions',
    simulate: `${BASE},service_tier=default`,
    cost: '120',
    line: ['service_tier', 'priority'],
    more: { service_tier: 'priority' },
  },
  deepseek: {
    upstream: 'chat-completions',
    simulate: `${BASE},cached=80,usage_form=deepseek`,
    // 20 x 1 + 80 x 0.1 + 10 x 2
    cost: '48',
    line: ['charge_cached_input', '80 tokens x 100000 per 1M = 8'],
  },
  groq: {
    upstream: 'chat-completions',
    simulate: `${BASE},cached=50,usage_form=groq`,
    // 50 x 1 + 50 x 0.1 + 10 x 2
    cost: '75',
    line: ['charge_cached_input', '50 tokens x 100000 per 1M = 5'],
  },
  xai: {
    upstream: 'chat-completions',
    simulate: `${BASE},reasoning=6,usage_form=xai`,
    // 100 x 1 + 10 x 2 + 6 x 3
    cost: '138',
    line: ['charge_reasoning', '6 tokens x 3000000 per 1M = 18'],
  },
}

const SUSPECT: Readonly<Record<string, readonly [simulate: string, named: RegExp]>> = {
  negative: [`${BASE},usage_fault=negative`, /^prompt_tokens -101$/],
  'cached-above': [`${BASE},usage_fault=cached_above`, /^cached 101 > prompt 100$/],
  falling: [
    'prompt_tokens=100,tokens=40,usage_fault=falling',
    /^prompt 50 < 100 before, output 20 < 40 before$/,
  ],
}

const upstreams: readonly ChatProtocol[] = ['chat-completions', 'messages', 'responses', 'generate-content']
const channels = upstreams.map((upstream) =>
  simulated(
    upstream,
    Object.fromEntries([
      ...Object.entries(CASES).flatMap(([id, plan]) =>
        plan.upstream === upstream ? [[id, `sim-m@${plan.simulate}`]] : [],
      ),
      ...(upstream === 'chat-completions'
        ? [
            ...Object.entries(SUSPECT).map(([id, [simulate]]) => [id, `sim-m@${simulate}`]),
            ['least', `sim-m@${BASE}`],
            ['silent', 'sim-m@fault=status:400'],
            ['planned', `sim-m@${BASE}`],
          ]
        : []),
    ]),
    { provider: upstream === 'chat-completions' ? 'xai' : undefined },
  ),
)
const plans = Object.fromEntries(
  channels.flatMap(({ models }) => Object.keys(models).map((id) => [id, { pricing: PRICES }])),
)
const [day, later] = ['2020-01-01T00:00:00Z', '2200-01-01T00:00:00Z']

t.test('prices', async (t) => {
  const service = await borrowService(
    t,
    configOf(
      {
        ...plans,
        least: { pricing: { unit: '1M_tokens', input: '1', output: '1', minimum: '0.5' } },
        silent: { pricing: { unit: '1M_tokens', input: '1', output: '1', minimum: '0.5' } },
        planned: {
          pricing: {
            ...{ unit: '1M_tokens', input: '1', output: '1' },
            changes: [
              { from: day, input: '3000000', output: '1000000' },
              { from: later, input: '7000000', output: '7000000' },
            ],
          },
        },
      },
      channels,
    ),
  )
  const { key } = await service.newKey('10000000')

  const detailOf = async (id: number) => {
    const answer = await fetch(`${service.baseUrl}/v1/logs/${id}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    return (await answer.json()) as {
      request: { k: string; v: string }[]
      gateway: { k: string; v: string }[]
    }
  }

  await t.test('each kind, tier and form, whole and streamed', async (t) => {
    const calls = Object.entries(CASES).flatMap(([model, plan]) =>
      [false, true].map((stream) => ({ model, plan, stream })),
    )
    const rows = await Promise.all(
      calls.map(async ({ model, plan: { upstream, more = {} }, stream }) => {
        const answer = await ask(service, key, upstream, model, { stream, more })
        t.equal(answer.status, 200, model)
        await answer.text()
        return rowOf(service, key, traceOf(answer))
      }),
    )
    for (const [index, { model, plan, stream }] of calls.entries()) {
      const row = rows[index]!
      t.equal(row.cost, plan.cost, `${model}, ${stream ? 'streamed' : 'whole'}`)
      // Details have a limit of their own.
      if (stream) continue
      const detail = await detailOf(row.id)
      const [name, value] = plan.line
      t.strictSame(
        [...detail.request, ...detail.gateway].find(({ k }) => k === name),
        { k: name, v: value },
        model,
      )
    }
  })

  await t.test('a translated call costs what a native one does', async (t) => {
    for (const model of ['write-1h', 'audio']) {
      const answer = await ask(service, key, 'chat-completions', model, { stream: true })
      await answer.text()
      t.equal((await rowOf(service, key, traceOf(answer))).cost, CASES[model]!.cost, model)
    }
  })

  await t.test('a service tier without a price is refused before the upstream', async (t) => {
    for (const [protocol, model, name] of [
      ['chat-completions', 'image', 'service_tier'],
      ['messages', 'write-1h', 'service_tier'],
      ['responses', 'reasoning', 'service_tier'],
      ['generate-content', 'audio', 'serviceTier'],
    ] as const) {
      const answer = await ask(service, key, protocol, model, { more: { [name]: 'scale' } })
      t.equal(answer.status, 400, protocol)
      t.match(await answer.text(), /no price is set for 'scale'/)
      t.equal((await rowOf(service, key, traceOf(answer))).attempts_count, 0)
    }
  })

  await t.test('a prediction without a price reaches no upstream, and is named', async (t) => {
    for (const [protocol, model] of [
      ['chat-completions', 'image'],
      ['responses', 'reasoning'],
    ] as const)
      for (const stream of [false, true]) {
        const asked = { prediction: { type: 'content', content: 'x' } }
        const more = protocol === 'responses' ? asked : { usage: { include: true }, ...asked }
        const answer = await ask(service, key, protocol, model, { stream, more })
        await answer.text()
        t.equal(answer.status, 200, protocol)
        t.equal(answer.headers.get('x-protocol-warning'), 'prediction')
        t.notOk('prediction' in JSON.parse((await upstreamRequest(service, traceOf(answer))).body))
        t.equal((await rowOf(service, key, traceOf(answer))).cost, CASES[model]!.cost)
      }
    const none = await ask(service, key, 'chat-completions', 'image', { more: { prediction: null } })
    await none.text()
    t.equal(none.headers.get('x-protocol-warning'), null)
  })

  await t.test('the estimate holds the dearer of the requested and the usual tier', async (t) => {
    // 10,000 tokens of output at 2 credits, by 2: 40,000, and the prompt.
    const poor = await service.newKey('30000')
    const asking = (service_tier: string) =>
      ask(service, poor.key, 'chat-completions', 'flex', { more: { max_tokens: 10_000, service_tier } })
    t.equal((await asking('priority')).status, 402)
    t.equal((await asking('flex')).status, 200, 'though half of it would do')
  })

  await t.test('a call costs at least its minimum, and nothing where it failed', async (t) => {
    const answer = await ask(service, key, 'chat-completions', 'least')
    await answer.text()
    t.equal((await rowOf(service, key, traceOf(answer))).cost, '0.5')
    const failed = await ask(service, key, 'chat-completions', 'silent')
    t.equal((await rowOf(service, key, traceOf(failed))).cost, '0')
  })

  await t.test('a call costs what holds at its submission', async (t) => {
    const answer = await ask(service, key, 'chat-completions', 'planned')
    await answer.text()
    // 100 x 3 + 10 x 1
    t.equal((await rowOf(service, key, traceOf(answer))).cost, '310')
    const { models } = (await (await fetch(`${service.baseUrl}/api/v1/models/public`)).json()) as {
      models: { id: string; pricing: { input: string; changes: { from: string; input: string }[] } }[]
    }
    t.match(models.find(({ id }) => id === 'planned')!.pricing, {
      input: '3000000',
      changes: [{ from: '2200-01-01T00:00:00.000Z', input: '7000000' }],
    })
  })

  for (const [model, [, named]] of Object.entries(SUSPECT))
    await t.test(`usage that contradicts itself: ${model}`, async (t) => {
      for (const stream of model === 'falling' ? [true] : [false, true]) {
        const before = await balanceOf(service, key)
        const more = { messages: [{ role: 'user', content: 'x'.repeat(200) }] }
        const answer = await ask(service, key, 'chat-completions', model, { stream, more })
        const text = await answer.text()
        const row = await rowOf(service, key, traceOf(answer))
        const { gateway } = await detailOf(row.id)
        t.match(gateway.find(({ k }) => k === 'usage_suspect')?.v, named)
        const prompt = Math.ceil(JSON.stringify(more.messages).length / 4)
        t.ok(row.input_tokens <= prompt, 'no more than the formula for the prompt')
        t.ok(row.output_tokens <= Math.ceil(text.length / 4), 'nor for what was said')
        t.ok(Number(row.cost) >= 0)
        t.ok(
          Number((await balanceOf(service, key)).remaining) <= Number(before.remaining),
          'nothing is credited',
        )
      }
    })
})
