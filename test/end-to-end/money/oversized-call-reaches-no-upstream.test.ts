/** A call that the balance does not cover reaches no upstream. See docs/failure-modes.md, "Money", row 2. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { balanceOf, callConfig, errorOf, rowsOf, say, traceOf, upstreamCalls } from '../support.ts'

/** 786 KB of them. */
const LARGE_TOOLS = [{ type: 'function', function: { name: 'f', description: 'x'.repeat(786_000) } }]

t.test('a call whose estimate is over the balance is 402, and no upstream is called', async (t) => {
  const service = await borrowService(t, callConfig({ fast: {} }))
  const { key } = await service.newKey('100')
  const refusals = [
    { model: 'fast', messages: say('hi'), max_tokens: 1000 },
    { model: 'fast', messages: say('hi'), max_tokens: 1000, stream: true },
    { model: 'fast', messages: say('x'.repeat(500)), max_tokens: 1 },
    { model: 'fast', messages: say('hi'), max_tokens: 10, n: 100 },
    { model: 'fast', messages: say('hi') },
  ]
  const traces: string[] = []
  for (const body of refusals) {
    const response = await service.chat(key, body)
    t.equal(response.status, 402)
    traces.push(traceOf(response))
    t.match(await errorOf(response), {
      message:
        /^The account balance is insufficient for this call: it may cost up to \d+(\.\d+)? credits, \d+(\.\d+)? of them for (the bytes of messages|an output of max_tokens \d+|an output without a limit: set max_tokens), and the balance is 100 credits\. Please top up and try again, or ask for less\.$/,
      type: 'insufficient_quota',
      code: 'quota_exceeded',
    })
  }
  for (const row of await rowsOf(service, key, traces))
    t.match(row, {
      status: 'rejected',
      error_code: 'quota_exceeded',
      model: 'fast',
      cost: '0',
      attempts_count: 0,
      input_tokens: 0,
      output_tokens: 0,
    })
  t.same(await upstreamCalls(service), [])
  t.match(await balanceOf(service, key), { remaining: '100', used: '0' })

  const small = await service.chat(key, { model: 'fast', messages: say('hi'), max_tokens: 5 })
  t.equal(small.status, 200, 'a call that fits goes through on the same balance')
  t.equal((await upstreamCalls(service)).length, 1)
})

t.test('tools count where the estimate is the worst case, and the refusal names them', async (t) => {
  const body = { model: 'fast', messages: say('hi'), max_tokens: 1, tools: LARGE_TOOLS }
  const specified = await borrowService(t, callConfig({ fast: {} }))
  const { key } = await specified.newKey('100')
  t.equal((await specified.chat(key, body)).status, 200, 'the formula of the interface does not count them')

  const worst = await borrowService(t, callConfig({ fast: {} }, 'estimate: worst_case'))
  const { key: other } = await worst.newKey('100')
  const refused = await worst.chat(other, body)
  t.equal(refused.status, 402)
  t.match(
    (await errorOf(refused)).message,
    /credits, \d+ of them for the bytes of tools and schemas, and the balance/,
  )
})
