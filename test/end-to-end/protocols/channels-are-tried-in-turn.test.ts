/**
 * In which order channels are tried, how often, and when one is left out.
 * See docs/failure-modes.md, "Engines", row 44; docs/api-rules.md, "Attempts".
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { until } from '../../support/service.ts'
import { rowOf, traceOf, upstreamCalls } from '../support.ts'
import {
  type AskOptions,
  ask,
  Books,
  CHAT_PROTOCOLS,
  type ChannelPlan,
  type ChatProtocol,
  checkTranslation,
  configOf,
  simulated,
} from './support.ts'

const TOKENS = 5
/** A plain call's prompt is counted so. */
const PROMPT_TOKENS = 9
const ANSWERS = `tokens=${TOKENS},prompt_tokens=${PROMPT_TOKENS}`
const FAILURES_IN_A_ROW = 5
const FAULTS = {
  busy: 'fault=status:429',
  slow: 'fault=status:408',
  broken: 'fault=status:500',
  moved: 'fault=status:308',
  first_event: 'fault=stream_error',
  dead: 'fault=reset:head',
}
type Fault = keyof typeof FAULTS

/** A failing channel, each with its own health, before one that answers. */
const failover = CHAT_PROTOCOLS.flatMap((protocol): ChannelPlan[] => [
  ...(Object.keys(FAULTS) as Fault[]).map((fault) =>
    simulated(
      protocol,
      { [`${protocol}.${fault}`]: `sim-bad@${FAULTS[fault]}` },
      { id: `bad-${protocol}-${fault}` },
    ),
  ),
  simulated(
    protocol,
    Object.fromEntries(Object.keys(FAULTS).map((fault) => [`${protocol}.${fault}`, `sim-good@${ANSWERS}`])),
    { id: `good-${protocol}`, priority: 1 },
  ),
])
/** A native channel that fails, and translated ones behind it, the first of which fails too. */
const crossing: ChannelPlan[] = [
  simulated('chat-completions', { crossing: 'sim-native@fault=status:503' }, { id: 'crossing-native' }),
  simulated('messages', { crossing: 'sim-messages@fault=status:529' }, { id: 'crossing-messages' }),
  simulated(
    'generate-content',
    { crossing: `sim-generate@${ANSWERS}` },
    { id: 'crossing-generate', priority: 1 },
  ),
]
/** One channel that fails, another behind it; both serve a second model well. And one that is alone. */
const setAside: ChannelPlan[] = [
  simulated('messages', { failing: 'sim-a@fault=status:503', well: 'sim-a' }, { id: 'aside-a' }),
  simulated('messages', { failing: 'sim-b', well: 'sim-b' }, { id: 'aside-b', priority: 1 }),
  simulated('messages', { alone: 'sim-alone@fault=status:503' }, { id: 'alone' }),
]
/** A channel whose `base_url` is one that its provider has left. */
const moved = simulated('messages', { moved: 'sim-moved@fault=status:301' }, { id: 'moved' })
/** Each call has a failing channel of its own; all are retried on one that takes its time. */
const BUDGETED = Array.from({ length: 8 }, (_, index) => `budgeted-${index}`)
const MIN_RETRIES = 3
const budget: ChannelPlan[] = [
  ...BUDGETED.map((id) => simulated('chat-completions', { [id]: 'sim-bad@fault=status:503' }, { id })),
  simulated(
    'chat-completions',
    Object.fromEntries(BUDGETED.map((id) => [id, 'sim-good@tokens=240,tps=200'])),
    { id: 'budgeted-good', priority: 1 },
  ),
]
/** More channels than are tried. */
const hopeless = Array.from({ length: 5 }, (_, index) =>
  simulated(
    'chat-completions',
    { hopeless: `sim-h${index}@fault=status:503` },
    { id: `hopeless-${index}`, priority: index },
  ),
)
const MAX_RETRIES = 2
const left: ChannelPlan[] = [
  simulated('generate-content', { left: 'sim-a@tokens=1000,tps=100' }, { id: 'left-a' }),
  simulated('generate-content', { left: 'sim-b' }, { id: 'left-b', priority: 1 }),
]
const EQUALS = ['one', 'two', 'three']
const equals = EQUALS.map((name) =>
  simulated('responses', { spread: `sim-${name}@tokens=1` }, { id: name, weight: name === 'one' ? 3 : 1 }),
)

t.test('channels', async (t) => {
  const channels = [...failover, ...crossing, ...setAside, ...budget, ...hopeless, ...left, ...equals, moved]
  const ids = new Set(channels.flatMap(({ models }) => Object.keys(models)))
  const service = await borrowService(
    t,
    configOf(Object.fromEntries([...ids].map((id) => [id, {}])), channels),
  )
  const { key } = await service.newKey('10000000')
  const call = (protocol: ChatProtocol, model: string, options?: AskOptions) =>
    ask(service, key, protocol, model, options)
  const calledBy = async (response: Response): Promise<string[]> => {
    await response.arrayBuffer()
    const calls = await upstreamCalls(service, traceOf(response))
    return calls.map(({ model }) => model?.replace(/@.*/, '') ?? '')
  }

  for (const protocol of CHAT_PROTOCOLS)
    await t.test(`${protocol}: what one cannot do another does, billed once`, async (t) => {
      const books = await Books.open(service)
      for (const [index, fault] of (Object.keys(FAULTS) as Fault[]).entries()) {
        // An error as the first event is one of streams.
        const stream = fault === 'first_event' || index % 2 === 0
        const response = await ask(service, books.key, protocol, `${protocol}.${fault}`, { stream })
        t.equal(response.status, 200)
        const called = await calledBy(response)
        // A connection that was kept and broke may have been an old one: the channel is asked once more.
        const isAskedTwice = fault === 'dead' && called.length === 3
        t.same(called, isAskedTwice ? ['sim-bad', 'sim-bad', 'sim-good'] : ['sim-bad', 'sim-good'])
        checkTranslation(t, response.headers, null)
        const attempts = called.map((name, index) => ({
          seq: index + 1,
          error_code: name === 'sim-bad' ? String : null,
        }))
        await books.charged(
          traceOf(response),
          { input: PROMPT_TOKENS, output: TOKENS },
          { attempts_count: called.length, attempts },
        )
      }
      await books.close(t)
    })

  await t.test('of other protocols are tried too, and the answer says so', async (t) => {
    const books = await Books.open(service)
    for (const stream of [false, true]) {
      const response = await ask(service, books.key, 'chat-completions', 'crossing', { stream })
      checkTranslation(t, response.headers, 'generate-content')
      t.same(await calledBy(response), ['sim-native', 'sim-messages', 'sim-generate'])
      await books.charged(traceOf(response), { input: PROMPT_TOKENS, output: TOKENS }, { attempts_count: 3 })
    }
    await books.close(t)
  })

  await t.test('that all fail are tried three times, each once', async (t) => {
    const response = await call('chat-completions', 'hopeless')
    t.equal(response.status, 503)
    t.same(await calledBy(response), ['sim-h0', 'sim-h1', 'sim-h2'])
    const row = await rowOf(service, key, traceOf(response))
    t.match(row, { status: 'error', cost: '0', attempts_count: 1 + MAX_RETRIES })
  })

  await t.test('that answer with a redirect have failed: no client can follow it', async (t) => {
    for (const protocol of ['messages', 'chat-completions'] as const)
      for (const stream of [false, true]) {
        const response = await call(protocol, 'moved', { stream })
        t.equal(response.status, 502)
        t.match(JSON.stringify(await response.json()), /The upstream answered with a redirect \(301\)/)
        const row = await rowOf(service, key, traceOf(response))
        t.match(row, { status: 'error', error_code: 'upstream_error', cost: '0' })
      }
  })

  await t.test('that fail five times in a row open their breaker; the last one stays callable', async (t) => {
    t.same(await calledBy(await call('messages', 'well')), ['sim-a'])
    for (let i = 0; i < FAILURES_IN_A_ROW; i++)
      t.same(await calledBy(await call('messages', 'failing')), ['sim-a', 'sim-b'])
    t.same(await calledBy(await call('messages', 'failing')), ['sim-b'])
    t.same(await calledBy(await call('messages', 'well')), ['sim-b'], 'whatever model is asked for')
    for (let i = 0; i < 2 * FAILURES_IN_A_ROW; i++) {
      const response = await call('messages', 'alone')
      t.equal(response.status, 503)
      t.same(await calledBy(response), ['sim-alone'])
    }
  })

  await t.test('are not asked again by everybody at once', async (t) => {
    const answers = await Promise.all(
      BUDGETED.map(async (model) => {
        const response = await call('chat-completions', model)
        return { status: response.status, calls: await calledBy(response) }
      }),
    )
    const retried = answers.filter(({ calls }) => calls.length === 2)
    t.equal(retried.length, MIN_RETRIES)
    for (const { status, calls } of answers) t.equal(status, calls.length === 2 ? 200 : 503)
    const late = await call('chat-completions', BUDGETED[0]!)
    t.same(await calledBy(late), ['sim-bad', 'sim-good'], 'what was taken was given back')
  })

  await t.test('of one priority share the calls, and a session stays with one', async (t) => {
    const upstreamOf = async (headers: Record<string, string>, more: object = {}) =>
      (await calledBy(await call('responses', 'spread', { headers, more })))[0]!
    const counted = new Map<string, number>()
    for (let i = 0; i < 60; i++) {
      const name = await upstreamOf({})
      counted.set(name, (counted.get(name) ?? 0) + 1)
    }
    t.equal(counted.size, EQUALS.length, 'each has its share')

    const pinned = new Set<string>()
    // A session's channel is a matter of chance: of 20 all may go to two of the three, of 100 never.
    for (let session = 0; session < 20 || (pinned.size < EQUALS.length && session < 100); session++) {
      const name = session % 2 === 0 ? 'session_id' : 'conversation_id'
      const seen = new Set<string>()
      for (let i = 0; i < 3; i++) seen.add(await upstreamOf({ [name]: `session-${session}` }))
      t.equal(seen.size, 1)
      for (const upstream of seen) pinned.add(upstream)
    }
    t.equal(pinned.size, EQUALS.length, 'not all with the same')

    const bodies = [
      (name: string) => ({ prompt_cache_key: name, metadata: { user_id: 'anyone' } }),
      (name: string) => ({ metadata: { user_id: name } }),
    ]
    for (const bodyOf of bodies)
      for (let conversation = 0; conversation < 5; conversation++) {
        const name = `conversation-${conversation}`
        const own = await upstreamOf({}, bodyOf(name))
        t.equal(await upstreamOf({}, bodyOf(name)), own)
        t.equal(await upstreamOf({ 'session-id': name }, bodyOf('another')), own, 'a header comes first')
      }
  })

  await t.test('are not blamed for clients that leave', async (t) => {
    for (let i = 0; i <= FAILURES_IN_A_ROW; i++) {
      const response = await call('generate-content', 'left', { stream: true })
      const reader = response.body!.getReader()
      await reader.read()
      await reader.cancel()
      const requestId = traceOf(response)
      await until('the upstream is let go', async () => {
        const [seen] = await upstreamCalls(service, requestId)
        return seen?.state === 'client_closed'
      })
      t.match((await upstreamCalls(service, requestId))[0], { model: /^sim-a@/ })
    }
  })

  await t.test('leave each attempt in the row', async (t) => {
    const response = await call('generate-content', 'generate-content.busy')
    const row = await rowOf(service, key, traceOf(response))
    const attempts = row.attempts as {
      seq: number
      error_code: string | null
      error_message: string | null
    }[]
    t.match(attempts, [
      { seq: 1, error_code: 'rate_limit_exceeded', error_message: /simulat/ },
      { seq: 2, error_code: null, error_message: null },
    ])
    t.notMatch(JSON.stringify(row), /bad-|good-|sim-|127\.0\.0\.1/)
  })
})
