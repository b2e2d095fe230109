/** Which of equal channels a call takes, and which key of a channel. */
import t from 'tap'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { MAX_KEY_REST_MS, REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'
import { type ForwardOptions, MODEL, RunningCall } from './forward-support.ts'

t.test('equal channels are chosen by strategy', async (t) => {
  // How one channel is chosen among those of one priority.
  const costing = (input: string, output: string) => ({
    cost: { [MODEL]: { unit: '1M_tokens', input, output } },
    priority: 0,
  })

  function servedBy(options: ConstructorParameters<typeof RunningCall>[0]): string {
    const call = new RunningCall(options)
    call.attempt.succeed()
    return call.attempt.request.channel.id
  }

  t.test('the cheapest first, by what the operator pays, and by the price without that', async (t) => {
    const options = {
      channels: ['unknown', 'dear', 'cheap'],
      modelFields: { strategy: 'least_cost' },
      channelFields: {
        unknown: { priority: 0 },
        dear: costing('3', '9'),
        cheap: costing('2', '8'),
      },
    }
    for (let i = 0; i < 20; i++) t.equal(servedBy(options), 'cheap')
    const call = new RunningCall(options)
    call.attempt.fail('connect')
    call.attempt.fail('connect')
    t.same(
      call.attempts.map(({ request }) => request.channel.id),
      ['cheap', 'dear', 'unknown'],
      'the next cheapest when one fails',
    )
    call.abort()
  })

  t.test('a price below a cost comes first, and the dearest kind and tier of the call count', async (t) => {
    const byCost = { modelFields: { strategy: 'least_cost' } }
    const equal = { priority: 0 }
    const channels = ['one', 'other']
    t.equal(
      servedBy({ ...byCost, channels, channelFields: { one: equal, other: costing('3000000', '3000000') } }),
      'one',
    )
    const priced = (more: object) => ({
      ...equal,
      cost: { [MODEL]: { unit: '1M_tokens', input: '1', output: '1', ...more } },
    })
    const dearer = costing('2', '2')
    t.equal(
      servedBy({ ...byCost, channels, channelFields: { one: priced({ reasoning: '100' }), other: dearer } }),
      'other',
      'its reasoning would cost more',
    )
    const channelFields = { one: priced({ service_tiers: { priority: '9' } }), other: dearer }
    const request = { service_tier: 'priority' }
    const { pricing } = {
      pricing: { unit: '1M_tokens', input: '1', output: '1', service_tiers: { priority: '2' } },
    }
    const modelFields = { strategy: 'least_cost', pricing }
    t.equal(servedBy({ channels, modelFields, channelFields, request }), 'other', 'its tier would cost more')
    t.equal(servedBy({ channels, modelFields, channelFields }), 'one')
  })

  t.test('a lower priority number stands above the cost', async (t) => {
    const options = {
      channels: ['first', 'cheap'],
      modelFields: { strategy: 'least_cost' },
      channelFields: { first: costing('9', '9'), cheap: { ...costing('1', '1'), priority: 1 } },
    }
    t.equal(servedBy(options), 'first')
  })

  t.test('the fastest first, after each was measured', async (t) => {
    const health = new ChannelHealth()
    const options = {
      channels: ['slow', 'fast'],
      modelFields: { strategy: 'least_latency' },
      channelFields: { slow: { priority: 0 }, fast: { priority: 0 } },
      health,
      random: () => 0.5,
    }
    const first = [servedBy(options), servedBy(options)]
    t.same(first.sort(), ['fast', 'slow'], 'one that was never measured comes first')
    const routeTo = (id: string) => ({ channel: { id }, upstreamModel: `upstream-name-of-${id}` }) as Route
    for (let i = 0; i < 50; i++) {
      health.latencies.noteTime(routeTo('slow'), 10_000)
      health.latencies.noteTime(routeTo('fast'), 10)
    }
    for (let i = 0; i < 5; i++) t.equal(servedBy(options), 'fast')
    t.equal(servedBy({ ...options, random: () => 0.01 }), 'slow', 'a few calls measure the others')
  })

  t.test('the only one is chosen by any strategy, paused since its call was admitted or not', async (t) => {
    for (const strategy of ['priority', 'least_cost', 'least_latency'])
      for (const held of [[], [['only', 'paused']] as const]) {
        const health = new ChannelHealth()
        health.hold(new Map(held))
        t.equal(servedBy({ channels: ['only'], modelFields: { strategy }, health }), 'only', strategy)
      }
  })

  t.test('by default equals share by weight', async (t) => {
    const options = { channels: ['a', 'b'], channelFields: { a: { priority: 0 }, b: { priority: 0 } } }
    t.equal(servedBy({ ...options, random: () => 0.1 }), 'a')
    t.equal(servedBy({ ...options, random: () => 0.9 }), 'b')
  })
})

t.test('refused keys rest alone', async (t) => {
  // A channel with several keys: which one is used, and what becomes of one that the upstream refuses.
  const KEYS = ['key-number-one-aaaa', 'key-number-two-bbbb', 'key-number-three-cccc']
  const POOL: ForwardOptions = {
    channels: ['pool'],
    channelFields: { pool: { api_key: KEYS[0], api_keys: KEYS } },
  }

  const keysOf = ({ attempts }: RunningCall) => attempts.map(({ request }) => request.channel.api_key)

  t.test('keys are used in turn', async (t) => {
    const health = new ChannelHealth()
    const used: string[] = []
    for (let i = 0; i < 4; i++) {
      const call = new RunningCall({ ...POOL, health })
      call.attempt.succeed()
      used.push(...keysOf(call))
    }
    t.same(used, [...KEYS, KEYS[0]])
  })

  t.test(
    'a refused key rests, its call goes on with the next, and the channel is not at fault',
    async (t) => {
      for (const status of [401, 403, 429]) {
        let now = 0
        const health = new ChannelHealth(() => now)
        const call = new RunningCall({ ...POOL, health, retries: 0 })
        call.attempt.refuse(status)
        call.attempt.succeed()
        t.same(keysOf(call), [KEYS[0], KEYS[1]], String(status))
        t.match(call.settlement, { status: 'success', attempts_count: 2, channel_id: 'pool' })
        t.match(call.settlement.attempts[0], { seq: 1 })
        t.equal(health.listReports()[0]?.recent_failures, 0)
        const used = new Set<string | undefined>()
        for (let i = 0; i < 4; i++) {
          const next = new RunningCall({ ...POOL, health })
          next.attempt.succeed()
          used.add(keysOf(next)[0])
        }
        t.same([...used].sort(), [KEYS[1], KEYS[2]].sort(), 'it rests')
        t.match(health.listReports()[0]?.keys, [
          { position: 1, refusals: 1, resting_until: /^1970/ },
          { position: 2, refusals: 0, resting_until: null },
          { position: 3, refusals: 0, resting_until: null },
        ])
        now = REFUSED_KEY_REST_MS + 1
        t.equal(health.listReports()[0]?.keys[0]?.resting_until, null, 'and is used again')
      }
    },
  )

  t.test('a conversation keeps its key, leaves it while it rests, and returns', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    const keyOf = (pin: string) => {
      const call = new RunningCall({ ...POOL, health, admitted: { pin } })
      call.attempt.succeed()
      return keysOf(call)[0]
    }
    const pins = Array.from({ length: 40 }, (_, at) => `acc_a conversation ${at}`)
    const own = new Map(pins.map((pin) => [pin, keyOf(pin)]))
    t.equal(new Set(own.values()).size, KEYS.length, 'each key has some')
    for (const pin of pins) t.equal(keyOf(pin), own.get(pin))

    const refused = new RunningCall({ ...POOL, health, admitted: { pin: pins[0]! } })
    refused.attempt.refuse(429)
    refused.attempt.succeed()
    const [resting, other] = keysOf(refused)
    t.same([resting, refused.settlement.status], [own.get(pins[0]!), 'success'])
    t.not(other, resting)
    for (const pin of pins) {
      if (own.get(pin) === resting) t.not(keyOf(pin), resting)
      else t.equal(keyOf(pin), own.get(pin), 'no other conversation moves')
    }
    now = REFUSED_KEY_REST_MS + 1
    for (const pin of pins) t.equal(keyOf(pin), own.get(pin))
  })

  t.test('a limited key rests as long as the upstream says', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    const call = new RunningCall({ ...POOL, health })
    call.attempt.refuse(429, 'no', { 'retry-after': '7' })
    call.attempt.succeed()
    now = 6_999
    t.not(health.listReports()[0]?.keys[0]?.resting_until, null)
    now = 7_000
    t.equal(health.listReports()[0]?.keys[0]?.resting_until, null)
  })

  t.test('a clock that is set back by hours lets no key rest for hours', async (t) => {
    let now = 10 * MAX_KEY_REST_MS
    const health = new ChannelHealth(() => now)
    const call = new RunningCall({ ...POOL, health })
    call.attempt.refuse(429)
    call.attempt.succeed()
    t.not(health.listReports()[0]?.keys[0]?.resting_until, null)
    now = 0
    t.equal(health.listReports()[0]?.keys[0]?.resting_until, null)
    const used: string[] = []
    for (const _ of KEYS) {
      const next = new RunningCall({ ...POOL, health })
      next.attempt.succeed()
      used.push(...keysOf(next))
    }
    t.same(used.sort(), [...KEYS].sort())
  })

  t.test('with every key refused the channel has failed, and the client reads nothing of them', async (t) => {
    const call = new RunningCall({ ...POOL, channels: ['pool', 'other'] })
    for (let i = 0; i < KEYS.length; i++) call.attempt.refuse(429)
    t.same(call.attempt.request.channel.id, 'other', 'the next channel serves')
    call.attempt.succeed()
    t.match(call.settlement, { status: 'success', channel_id: 'other', attempts_count: 4 })

    const alone = new RunningCall(POOL)
    for (const key of KEYS) {
      alone.attempt.refuse(401, `Incorrect API key provided: ${key}`)
    }
    t.same(alone.attempts.length, KEYS.length, 'each key once')
    t.match(alone.error, { status: 401, code: 'invalid_api_key' })
    for (const key of KEYS) {
      t.notMatch(String((alone.error as Error).message), key)
      t.notMatch(JSON.stringify(alone.settlement), key)
    }
  })

  t.test("the customer's own mistake rests no key", async (t) => {
    const call = new RunningCall(POOL)
    call.attempt.refuse(400)
    t.equal(call.attempts.length, 1)
    t.match(
      call.health.listReports()[0]?.keys.map(({ resting_until }) => resting_until),
      [null, null, null],
    )
  })
})
