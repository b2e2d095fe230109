/** A customer's 402 does not count against the health of a channel. See docs/failure-modes.md, "Money", row 24. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { traceOf, upstreamCalls } from '../support.ts'
import { ask, configOf, simulated } from './support.ts'

/** So many failures in a row, and more, set a channel aside. */
const MANY = 8

t.test("a customer's own errors", async (t) => {
  const service = await borrowService(
    t,
    configOf({ m: {}, broken: {}, strict: { max_output_tokens: 100 } }, [
      simulated(
        'chat-completions',
        { m: 'sim-first', strict: 'sim-first@fault=status:400', broken: 'sim-first@fault=status:500' },
        { id: 'first', priority: 0 },
      ),
      simulated(
        'chat-completions',
        { m: 'sim-second', strict: 'sim-second', broken: 'sim-second' },
        { id: 'second', priority: 1 },
      ),
    ]),
  )
  const { key } = await service.newKey('1000000')
  const poor = await service.newKey('0')
  const low = await service.newKey('5')
  const call = (raw: string, model: string, more = {}) =>
    ask(service, raw, 'chat-completions', model, { more })
  const upstreamOf = async (model: string) => {
    const response = await call(key, model)
    const [first, ...more] = await upstreamCalls(service, traceOf(response))
    t.same(more, [], 'one attempt')
    return first?.model
  }
  const goesToFirst = async (what: string) => t.equal(await upstreamOf('m'), 'sim-first', what)

  await t.test('never reach an upstream, and say nothing of it', async (t) => {
    for (let i = 0; i < MANY; i++) {
      t.equal((await call(poor.key, 'm')).status, 402)
      t.equal((await call(low.key, 'm')).status, 402)
      t.equal((await call(key, 'm', { temperature: 9 })).status, 400)
      t.equal((await call(key, 'unheard-of')).status, 400)
    }
    t.same(await upstreamCalls(service), [])
    await goesToFirst('the breaker stays closed')
  })

  await t.test('that the upstream finds do not count against it, and no other is tried', async (t) => {
    for (let i = 0; i < MANY; i++) {
      const response = await call(key, 'strict')
      t.equal(response.status, 400)
      t.equal((await upstreamCalls(service, traceOf(response))).length, 1)
    }
    await goesToFirst('the breaker stays closed')
  })

  await t.test('are not the same as a channel that fails', async (t) => {
    for (let i = 0; i < MANY; i++) {
      const response = await call(key, 'broken')
      await response.arrayBuffer()
      t.equal(response.status, 200)
    }
    t.equal(await upstreamOf('m'), 'sim-second', 'its breaker is open')
  })

  await t.test('do not bring it back either', async (t) => {
    for (let i = 0; i < MANY; i++) t.equal((await call(poor.key, 'm')).status, 402)
    t.equal(await upstreamOf('m'), 'sim-second')
  })
})
