/**
 * What a conversation holds counts in the estimate of each call that goes on with it, whatever became of the calls before:
 * those that their clients left, those without usage, and items that were added meanwhile. See docs/api-rules.md,
 * "Conversations".
 */
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { balanceOf, errorOf, post, rowOf, traceOf } from '../support.ts'

const KEEPING = { keeps_responses_days: 30, keeps_conversations: true }
const MODELS = {
  plain: 'sim-m@tokens=5',
  unreported: 'sim-m@tokens=5,usage=none',
  slow: 'sim-m@tokens=400,tps=20',
  refusing: 'sim-m@fault=status:400',
}
const PATH = '/v1/responses'
/** About 20,000 tokens. */
const STORY = [{ role: 'user', content: 'a long story '.repeat(6_000) }]
const STORY_TOKENS = Math.ceil(JSON.stringify(STORY).length / 4)
const pricing = { unit: '1M_tokens', input: '100', output: '100' } as const

const configFor = (more: object) =>
  configOf(
    Object.fromEntries(Object.keys(MODELS).map((id) => [id, { pricing, context_window: 1_000_000 }])),
    [simulated('responses', MODELS, { ...KEEPING, id: 'keeping' })],
    more,
  )

for (const mode of ['specified', 'worst_case'] as const)
  t.test(`with the estimate ${mode}`, async (t) => {
    const service = await borrowService(t, configFor({ estimate: mode }))

    const begin = async (credits: string) => {
      const { key } = await service.newKey(credits)
      const begun = await post(service, key, '/v1/conversations', {
        items: [{ role: 'user', content: 'hi' }],
      })
      t.equal(begun.status, 200)
      const { id } = (await begun.json()) as { id: string }
      const ask = (model: string, more: object = {}) =>
        post(service, key, PATH, { model, input: 'hi', conversation: id, max_output_tokens: 16, ...more })
      /** What a call in the conversation would be estimated at, in tokens: a wallet says so in its refusal. */
      const kept = async () => {
        const refused = await ask('plain', { max_output_tokens: 10_000_000 })
        t.equal(refused.status, 402)
        const { message } = await errorOf(refused)
        const [, cost = ''] = /may cost up to (\d+(?:\.\d+)?) credits/.exec(message) ?? []
        return Math.round(Number(cost) * 10_000) - 10_000_000
      }
      return { key, id, ask, kept }
    }

    await t.test('a call without usage counts with its own estimate', async (t) => {
      const { ask, kept } = await begin('100')
      const before = await kept()
      await (await ask('unreported', { input: STORY })).text()
      t.ok((await kept()) >= before + STORY_TOKENS)
      await (await ask('plain')).text()
      const reported = await kept()
      t.ok(reported > 10_000, `a report replaces it: ${reported}`)
    })

    await t.test('a call that its client left counts with its own estimate', async (t) => {
      const { ask, kept, key } = await begin('100')
      const before = await kept()
      const left = await ask('slow', { input: STORY, stream: true, max_output_tokens: 400 })
      const reader = left.body!.getReader()
      await reader.read()
      t.ok((await kept()) >= before + STORY_TOKENS, 'while it is under way')
      await reader.cancel()
      await rowOf(service, key, traceOf(left))
      t.ok((await kept()) >= before + STORY_TOKENS, 'and afterwards')
    })

    await t.test('items that are added while a call is under way stay counted', async (t) => {
      const { id, key, ask, kept } = await begin('100')
      const before = await kept()
      const stream = await ask('slow', { stream: true, max_output_tokens: 400 })
      const added = await post(service, key, `/v1/conversations/${id}/items`, { items: STORY })
      t.equal(added.status, 200)
      await stream.text()
      t.ok((await kept()) >= before + STORY_TOKENS)
    })

    await t.test('a call that was refused adds nothing', async (t) => {
      const { ask, kept } = await begin('100')
      const before = await kept()
      t.equal((await ask('refusing', { input: STORY })).status, 400)
      t.equal((await ask('plain', { input: STORY, max_output_tokens: 10_000_000 })).status, 402)
      await until('it is given back', async () => (await kept()) === before)
    })

    await t.test('a wallet of one credit pays for no conversation that costs many', async (t) => {
      const { id, key, ask } = await begin('1')
      const add = () => post(service, key, `/v1/conversations/${id}/items`, { items: STORY })
      const statuses: number[] = []
      for (let turn = 0; turn < 12; turn++) {
        const response = await ask(turn % 2 === 0 ? 'plain' : 'unreported')
        statuses.push(response.status)
        await response.text()
        await add()
      }
      t.ok(statuses.includes(200) && statuses.at(-1) === 402, String(statuses))
      const { remaining } = await balanceOf(service, key)
      t.ok(Number(remaining) >= 0, remaining)
    })
  })
