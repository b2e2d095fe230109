/** Fallbacks and key pools through a whole gateway. See docs/api-rules.md, "Attempts". */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { rowOf, traceOf, UPSTREAM_KEY } from '../support.ts'
import { ask, Books, CHAT_PROTOCOLS, configOf, simulated } from './support.ts'

const ANSWERS = 'tokens=5,prompt_tokens=9'
const DEARER = { unit: '1M_tokens', input: '3000000', output: '4000000' } as const
const FAILS = 'fault=status:503'
/** An estimate: the output limit times the price, and a few tokens of prompt. */
const OUTPUT_LIMIT = 1000

t.test('every channel of a model fails: another one serves', async (t) => {
  const service = await borrowService(
    t,
    configOf(
      {
        ...Object.fromEntries(CHAT_PROTOCOLS.map((id) => [`wanted-${id}`, { fallbacks: [`other-${id}`] }])),
        ...Object.fromEntries(CHAT_PROTOCOLS.map((id) => [`other-${id}`, { pricing: DEARER }])),
        unserved: { fallbacks: ['other-messages'] },
      },
      CHAT_PROTOCOLS.flatMap((protocol) => [
        simulated(protocol, { [`wanted-${protocol}`]: `sim-a@${FAILS}` }, { id: `bad-${protocol}` }),
        simulated(protocol, { [`other-${protocol}`]: `sim-b@${ANSWERS}` }, { id: `good-${protocol}` }),
      ]),
    ),
  )

  for (const protocol of CHAT_PROTOCOLS)
    for (const stream of [false, true])
      await t.test(`${protocol}${stream ? ', streamed' : ''}`, async (t) => {
        const { key } = await service.newKey('1000000')
        const response = await ask(service, key, protocol, `wanted-${protocol}`, { stream })
        await response.text()
        t.equal(response.status, 200)
        t.equal(response.headers.get('x-served-model'), `other-${protocol}`)
        t.match(response.headers.get('access-control-expose-headers'), 'x-served-model')
        const row = await rowOf(service, key, traceOf(response))
        // 9 x 3 + 5 x 4
        t.match(row, { status: 'success', model: `other-${protocol}`, cost: '47' })
      })

  await t.test('a model without a channel is served at once', async (t) => {
    const { key } = await service.newKey('1000000')
    const response = await ask(service, key, 'messages', 'unserved')
    t.equal(response.status, 200)
    t.equal(response.headers.get('x-served-model'), 'other-messages')
    await response.text()
  })

  await t.test('the hold covers the dearest of the chain', async (t) => {
    // Enough for the model that was asked for, 2 credits a token, and not for the other one at 4.
    const { key } = await service.newKey(String(OUTPUT_LIMIT * 3))
    const response = await ask(service, key, 'messages', 'wanted-messages', {
      more: { max_tokens: OUTPUT_LIMIT },
    })
    t.equal(response.status, 402)
    await response.text()
  })

  await t.test('a key that may not call the other model fails with its own', async (t) => {
    const { key } = await service.newKey('1000000', { allowedModels: ['wanted-messages'] })
    const response = await ask(service, key, 'messages', 'wanted-messages')
    t.equal(response.status, 503)
    t.equal(response.headers.get('x-served-model'), null)
    await response.text()
  })
})

t.test('a refused key of a pool costs its channel nothing', async (t) => {
  const service = await borrowService(
    t,
    configOf({ pooled: {} }, [
      simulated(
        'chat-completions',
        { pooled: `sim-pool@${ANSWERS}` },
        { id: 'pool', api_key: '', api_keys: [UPSTREAM_KEY, `${UPSTREAM_KEY}-second`] },
      ),
    ]),
  )
  const books = await Books.open(service)
  for (let i = 0; i < 3; i++) {
    const response = await ask(service, books.key, 'chat-completions', 'pooled')
    t.equal(response.status, 200)
    await response.text()
    await books.charged(response.headers.get('x-gateway-trace'), { input: 9, output: 5 })
  }
  await books.close(t)
})
