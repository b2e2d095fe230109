/**
 * No stream has a byte of another, the client's abort reaches the upstream, and no concurrency slot leaks.
 * See docs/failure-modes.md, "Streams", rows 39, 41 and 42.
 */
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { balanceOf, callConfig, eventsIn, readUntil, rowOf, say, traceOf, upstreamCalls } from '../support.ts'
import { bookedRows, clientFor, each } from './support.ts'

const STREAMS = 300
const WORDS_PER_STREAM = 20
/** Prime, so that pieces begin and end everywhere in the events. */
const PIECE_BYTES = 101

const ABORTS = 500
const ABORTS_AT_A_TIME = 100
const SEED = 42

const MESSAGES = say('hello')
const BODY = { model: 'm', messages: MESSAGES, max_tokens: 100 }
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)

/** The sum of a gauge over the gateway's processes. */
async function gauge(service: TestService, name: string): Promise<number> {
  const text = await (await fetch(`${service.baseUrl}/metrics`)).text()
  const values = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  if (values.length === 0) throw new Error(`no ${name} in the metrics`)
  return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const isIdle = (service: TestService): Promise<void> =>
  until('no call is in flight', async () => (await gauge(service, 'tollgate_calls_in_flight')) === 0)

t.test('many at a time, and clients that leave', async (t) => {
  const service = await startService(t, {
    config: callConfig({
      m: {},
      silent: { simulate: 'ttft=600000' },
      slow: { simulate: 'tps=20,tokens=2000' },
    }),
  })

  await t.test('500 streams at once, each of its own words: no foreign byte in any', async (t) => {
    const { accountId, key } = await service.newKey('1000000')
    const call = clientFor(t, service, key, STREAMS)
    const numbers = Array.from({ length: STREAMS }, (_, i) => i)
    let mixedUp = 0
    await each(numbers, STREAMS, async (number) => {
      const text = Array(WORDS_PER_STREAM).fill(`tag-${number}-é`).join(' ')
      const simulate = { text, split: PIECE_BYTES }
      const { status, body, isWhole } = await call({ ...BODY, stream: true, simulate })
      const events = eventsIn(body.toString())
      const said = events.slice(0, -1).map((event) => JSON.parse(event).choices[0].delta.content ?? '')
      const isOwn = said.join('') === text && new Set(body.toString().match(/tag-\d+/g)).size === 1
      if (status !== 200 || !isWhole || events.at(-1) !== '[DONE]' || !isOwn) mixedUp++
    })
    t.equal(mixedUp, 0)
    const rows = [...(await bookedRows(service, accountId, STREAMS)).values()]
    const costs = new Set(rows.map(({ status, cost }) => `${status} ${cost}`))
    t.strictSame(costs, new Set([`success ${PROMPT_TOKENS + 2 * WORDS_PER_STREAM}`]))
  })

  await t.test("the client's abort closes the upstream's connection", async (t) => {
    const { key } = await service.newKey('1000000')
    const isLeft = (requestId: string) =>
      eventually('the upstream sees its caller leave', async () => {
        const [call] = await upstreamCalls(service, requestId)
        return call?.state === 'client_closed' ? call : undefined
      })
    const running = (model: string) =>
      eventually('the upstream is called', async () => {
        const calls = await upstreamCalls(service)
        return calls.findLast((call) => call.model?.startsWith(`sim-${model}@`) && call.state === 'running')
      })

    for (const stream of [true, false]) {
      const leave = new AbortController()
      const body = { model: 'silent', messages: MESSAGES, max_tokens: 10, stream }
      const response = service.chat(key, body, { signal: leave.signal }).catch(() => null)
      const { request_id } = await running('silent')
      leave.abort()
      t.equal(await response, null)
      t.equal((await isLeft(request_id!)).output_tokens, 0, 'before the first token')
      const row = await rowOf(service, key, request_id!)
      t.match(row, { status: 'interrupted', output_tokens: 0, input_tokens: PROMPT_TOKENS, error_code: null })
    }

    const leave = new AbortController()
    const response = await service.chat(
      key,
      { model: 'slow', messages: MESSAGES, stream: true },
      { signal: leave.signal },
    )
    await readUntil(response, (bytes) => eventsIn(bytes.toString()).length >= 3)
    leave.abort()
    const call = await isLeft(traceOf(response))
    t.ok(call.output_tokens < 2000, 'in the middle of the stream')
    t.match(await rowOf(service, key, traceOf(response)), { status: 'interrupted' })
    await isIdle(service)
  })

  await t.test('1,000 clients leave at random, and nothing stays in flight or reserved', async (t) => {
    const { key } = await service.newKey('10000000')
    const random = new Random(SEED)
    const plans = Array.from({ length: ABORTS }, () => ({
      stream: random.chance(0.7),
      ttft: random.pick([0, 0, 5, 600_000]),
      tps: random.pick([0, 200, 2000]),
      leavesAfterMs: random.int(0, 40),
    }))
    let admitted = 0
    await each(plans, ABORTS_AT_A_TIME, async ({ stream, leavesAfterMs, ...simulate }) => {
      const body = { ...BODY, stream, simulate }
      try {
        const response = await service.chat(key, body, { signal: AbortSignal.timeout(leavesAfterMs) })
        admitted++
        await response.arrayBuffer()
      } catch {
        // Left.
      }
    })
    t.ok(admitted < ABORTS, 'some left before their first byte')
    await isIdle(service)
    await until('the upstream has seen every connection close', async () => {
      const stats = await fetch(`${service.engines.simulatorUrl}/simulator/stats`)
      return ((await stats.json()) as { running: number }).running === 0
    })

    const { remaining } = await balanceOf(service, key)
    const isOdd = (Number(remaining) - PROMPT_TOKENS) % 2 === 1
    const messages = say(isOdd ? 'hello you' : 'hello')
    const prompt = PROMPT_TOKENS + Number(isOdd)
    const whole = { model: 'm', messages, max_tokens: (Number(remaining) - prompt) / 2 }
    const tooMuch = await service.chat(key, { ...whole, max_tokens: whole.max_tokens + 1 })
    t.equal(tooMuch.status, 402)
    t.equal((await service.chat(key, whole)).status, 200, 'all that remains can be spent by one call')
  })
})
