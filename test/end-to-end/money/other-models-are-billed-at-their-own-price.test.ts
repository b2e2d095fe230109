/**
 * Models that the upstream asks besides the one of the request, `fallbacks` and advisors, cost what they cost themselves;
 * without a price no upstream may ask them. See docs/pricing.md, "Other models".
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { type LentService, startService } from '../../support/service.ts'
import { ask, configOf, simulated } from '../protocols/support.ts'
import { checkCharges, rowOf, traceOf, upstreamRequest } from '../support.ts'

/** 100 prompt tokens at 1 credit and 10 of output at 2: 120. */
const TOKENS = 'prompt_tokens=100,tokens=10'
const unit = '1M_tokens'
const MODELS = {
  ...Object.fromEntries(
    [
      'own',
      'declines',
      'blocked',
      'blocked-bio',
      'refused',
      'refused-bio',
      'refused-late',
      'slow',
      'estranged',
    ].map((name) => [name, {}]),
  ),
  dear: { pricing: { unit, input: '100000000', output: '200000000' } },
  dearest: { pricing: { unit, input: '1000000000', output: '2000000000' }, aliases: ['best'] },
  elsewhere: {},
  poster: { endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '5' } },
} as const
const CHANNELS = [
  simulated('messages', {
    own: `sim-own@${TOKENS},advice=2`,
    declines: `sim-own@${TOKENS},declined=4`,
    blocked: `sim-own@${TOKENS},declined=0`,
    'blocked-bio': `sim-own@${TOKENS},declined=0,code=bio`,
    refused: 'sim-own@prompt_tokens=100,tokens=0,refused',
    'refused-bio': 'sim-own@prompt_tokens=100,tokens=0,refused,code=bio',
    'refused-late': `sim-own@${TOKENS},refused`,
    slow: 'sim-slow@tokens=2000,tps=20,advice=2',
    estranged: `sim-own@${TOKENS},advice=1,other_model=sim-stranger`,
    dear: 'sim-dear@tag=a',
    dearest: 'sim-dearest',
  }),
  simulated('messages', { elsewhere: 'sim-elsewhere' }, { id: 'other' }),
]
const CONFIG = configOf(MODELS as never, CHANNELS)

const OWN_TOOL = { name: 'look', input_schema: { type: 'object' } }
const advisor = (model: string, more: object = {}) => ({
  ...{ type: 'advisor_20260301', name: 'advisor', model },
  ...more,
})

async function readChargeLines(service: LentService, key: string, id: number) {
  const { gateway } = (await (await service.get(key, `/v1/logs/${id}`)).json()) as {
    gateway: { k: string; v: string }[]
  }
  return Object.fromEntries(gateway.filter(({ k }) => k.startsWith('charge')).map(({ k, v }) => [k, v]))
}

t.test('other models', async (t) => {
  const service = await borrowService(t, CONFIG)
  const limits = { max_tokens: 64 }

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'

    await t.test(`a fallback that answers, ${how}`, async (t) => {
      const { key } = await service.newKey('10000000')
      const fallbacks = [{ model: 'dear', max_tokens: 32 }, { model: 'elsewhere' }]
      const answer = await ask(service, key, 'messages', 'declines', {
        stream,
        more: { ...limits, fallbacks },
      })
      t.match(await answer.text(), /"type":"fallback_message","model":"sim-dear"/)
      t.equal(answer.headers.get('x-protocol-warning'), 'fallbacks', 'the one of another channel is left out')
      const sent = JSON.parse((await upstreamRequest(service, traceOf(answer))).body)
      t.same(sent.fallbacks, [{ model: 'sim-dear@tag=a', max_tokens: 32 }])
      // 100 x 1 + 4 x 2, and 100 x 100 + 10 x 200.
      const row = await rowOf(service, key, traceOf(answer))
      t.match(row, { model: 'declines', cost: '12108', input_tokens: 200, output_tokens: 14 })
      t.same(await readChargeLines(service, key, row.id), {
        'charge_input (declines)': '100 tokens x 1000000 per 1M = 100',
        'charge_output (declines)': '4 tokens x 2000000 per 1M = 8',
        'charge (declines)': '108',
        'charge_input (dear)': '100 tokens x 100000000 per 1M = 10000',
        'charge_output (dear)': '10 tokens x 200000000 per 1M = 2000',
        'charge (dear)': '12000',
      })
      const blocked = await ask(service, key, 'messages', 'blocked', {
        stream,
        more: { ...limits, fallbacks: [{ model: 'dear' }] },
      })
      await blocked.text()
      t.equal(blocked.headers.get('x-protocol-warning'), null)
      t.match(await rowOf(service, key, traceOf(blocked)), { cost: '12000' }, 'no output, no bill')
      const billed = await ask(service, key, 'messages', 'blocked-bio', {
        stream,
        more: { ...limits, fallbacks: [{ model: 'dear' }] },
      })
      await billed.text()
      t.match(await rowOf(service, key, traceOf(billed)), { cost: '12100' }, 'of a category that is billed')
      await checkCharges(t, service, key, 3)
    })

    for (const protocol of ['messages', 'chat-completions'] as const)
      await t.test(`refusals, ${how}, for clients of ${protocol}`, async (t) => {
        const { key } = await service.newKey('10000')
        for (const [model, cost, input_tokens] of [
          ['refused', '0', 0],
          ['refused-bio', '100', 100],
          ['refused-late', '120', 100],
        ] as const) {
          const answer = await ask(service, key, protocol, model, { stream, more: limits })
          t.match(await answer.text(), protocol === 'messages' ? /"refusal"/ : /"content_filter"/)
          const row = await rowOf(service, key, traceOf(answer))
          t.match(row, { status: 'success', cost, input_tokens }, model)
        }
        await checkCharges(t, service, key, 3)
      })

    await t.test(`an advisor that is asked twice, ${how}`, async (t) => {
      const { key } = await service.newKey('100000000')
      const tools = [advisor('best', { max_uses: 3, max_tokens: 1024 }), OWN_TOOL]
      const answer = await ask(service, key, 'messages', 'own', { stream, more: { ...limits, tools } })
      await answer.text()
      t.equal(answer.headers.get('x-protocol-warning'), null)
      const sent = JSON.parse((await upstreamRequest(service, traceOf(answer))).body)
      t.same(sent.tools, [advisor('sim-dearest', { max_uses: 3, max_tokens: 1024 }), OWN_TOOL])
      // 3 x 100 x 1 + 10 x 2, and 2 x (100 x 1000 + 100 x 2000).
      const row = await rowOf(service, key, traceOf(answer))
      t.match(row, { cost: '600320', input_tokens: 500, output_tokens: 210 })
      t.match(await readChargeLines(service, key, row.id), {
        'charge (own)': '320',
        'charge (dearest)': '600000',
      })
      await checkCharges(t, service, key, 1)
    })

    await t.test(`a model that the catalog does not have costs as the dearest, ${how}`, async (t) => {
      const { key } = await service.newKey('10000000')
      const tools = [advisor('dear')]
      const answer = await ask(service, key, 'messages', 'estranged', { stream, more: { ...limits, tools } })
      await answer.text()
      // 2 x 100 x 1 + 10 x 2, and 100 x 1000 + 100 x 2000.
      const row = await rowOf(service, key, traceOf(answer))
      t.match(row, { cost: '300220' })
      t.equal(
        (await readChargeLines(service, key, row.id))['charge (sim-stranger, at the price of dearest)'],
        '300000',
      )
      await checkCharges(t, service, key, 1)
    })
  }

  await t.test('what has no price, or is not allowed, is left out and named', async (t) => {
    const { key, accountId } = await service.newKey('10000000')
    const { raw: narrow } = await service.database.keys.create({
      ...{ name: 'narrow', accountId, allowedModels: ['own', 'blocked'] },
    })
    const cases: readonly (readonly [key: string, more: object, warning: string])[] = [
      [key, { fallbacks: [{ model: 'nix' }], tools: [advisor('elsewhere'), OWN_TOOL] }, 'fallbacks; advisor'],
      [key, { fallbacks: 'default' }, 'fallbacks'],
      [key, { fallbacks: [{ model: 'dear', speed: 'fast' }] }, 'fallbacks'],
      [
        key,
        { speed: 'fast', fallbacks: [{ model: 'dear' }], tools: [advisor('dear')] },
        'fallbacks; advisor',
      ],
      [key, { fallbacks: [{ model: 'poster' }, { nothing: 1 }] }, 'fallbacks'],
      [narrow, { fallbacks: [{ model: 'dear' }], tools: [advisor('best')] }, 'fallbacks; advisor'],
    ]
    for (const [caller, more, warning] of cases) {
      const answer = await ask(service, caller, 'messages', 'own', { more: { ...limits, ...more } })
      t.equal(answer.status, 200)
      t.equal(answer.headers.get('x-protocol-warning'), warning)
      const sent = JSON.parse((await upstreamRequest(service, traceOf(answer))).body)
      t.notOk('fallbacks' in sent)
      t.notMatch(JSON.stringify(sent.tools ?? []), /advisor/)
      t.match(await rowOf(service, caller, traceOf(answer)), { cost: '120' })
    }
  })

  await t.test('the estimate covers the dearest, and the highest price leaves others out', async (t) => {
    const { key } = await service.newKey('100000')
    const more = { ...limits, fallbacks: [{ model: 'dearest' }] }
    const refused = await ask(service, key, 'messages', 'blocked', { more })
    t.equal(refused.status, 402)
    const limited = await ask(service, key, 'messages', 'blocked', {
      more,
      headers: { 'x-max-price': '1000' },
    })
    t.equal(limited.status, 200)
    t.equal(limited.headers.get('x-protocol-warning'), 'fallbacks')
    t.match(await rowOf(service, key, traceOf(limited)), { cost: '120' })
  })

  await t.test('a client that leaves owes the advice that was given', async (t) => {
    const { key } = await service.newKey('100000000')
    const left = new AbortController()
    const answer = await fetch(`${service.baseUrl}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model: 'slow', max_tokens: 4000, stream: true, messages: [{ role: 'user', content: 'hi' }] },
        tools: [advisor('dear', { max_tokens: 1100 })],
      }),
      signal: left.signal,
    })
    const reader = answer.body!.getReader()
    let seen = ''
    while (!seen.includes('text_delta')) seen += new TextDecoder().decode((await reader.read()).value)
    left.abort()
    const row = await rowOf(service, key, traceOf(answer))
    t.match(row, { status: 'interrupted' })
    const { 'charge_output (dear)': said } = await readChargeLines(service, key, row.id)
    t.equal(said, '2200 tokens x 200000000 per 1M = 440000')
    await checkCharges(t, service, key, 1)
  })
})

t.test('a service that is killed in the middle of such an answer', async (t) => {
  const service = await startService(t, { config: CONFIG })
  const { key } = await service.newKey('100000000')
  const tools = [advisor('dear', { max_tokens: 1100 })]
  const whole = await ask(service, key, 'messages', 'own', { stream: true, more: { max_tokens: 64, tools } })
  await whole.text()
  const refused = await ask(service, key, 'messages', 'refused', { stream: true, more: { max_tokens: 64 } })
  await refused.text()
  const cut = await ask(service, key, 'messages', 'slow', { stream: true, more: { max_tokens: 4000, tools } })
  const reader = cut.body!.getReader()
  await reader.read()
  await service.kill()
  await reader.read().catch(() => {})
  await service.start()
  // 3 x 100 x 1 + 10 x 2, and 2 x (100 x 100 + 100 x 200).
  const rows = await checkCharges(t, service, key, 3)
  t.match(rows, [
    { status: 'interrupted', cost: '0' },
    { status: 'success', cost: '0' },
    { status: 'success', cost: '60320' },
  ])
})
