/** A channel with several keys: which one is used, and what becomes of one that the upstream refuses. */
import t from 'tap'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { MAX_KEY_REST_MS, REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'
import { type ForwardOptions, RunningCall } from './forward-support.ts'

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

t.test('a refused key rests, its call goes on with the next, and the channel is not at fault', async (t) => {
  for (const status of [401, 403, 429]) {
    let now = 0
    const health = new ChannelHealth(() => now)
    const call = new RunningCall({ ...POOL, health, retries: 0 })
    call.attempt.refuse(status)
    call.attempt.succeed()
    t.same(keysOf(call), [KEYS[0], KEYS[1]], String(status))
    t.match(call.settlement, { status: 'success', attempts_count: 2, channel_id: 'pool' })
    t.match(call.settlement.attempts[0], { seq: 1 })
    t.equal(health.reports()[0]?.recent_failures, 0)
    const used = new Set<string | undefined>()
    for (let i = 0; i < 4; i++) {
      const next = new RunningCall({ ...POOL, health })
      next.attempt.succeed()
      used.add(keysOf(next)[0])
    }
    t.same([...used].sort(), [KEYS[1], KEYS[2]].sort(), 'it rests')
    t.match(health.reports()[0]?.keys, [
      { position: 1, refusals: 1, resting_until: /^1970/ },
      { position: 2, refusals: 0, resting_until: null },
      { position: 3, refusals: 0, resting_until: null },
    ])
    now = REFUSED_KEY_REST_MS + 1
    t.equal(health.reports()[0]?.keys[0]?.resting_until, null, 'and is used again')
  }
})

t.test('a limited key rests as long as the upstream says', async (t) => {
  let now = 0
  const health = new ChannelHealth(() => now)
  const call = new RunningCall({ ...POOL, health })
  call.attempt.refuse(429, 'no', { 'retry-after': '7' })
  call.attempt.succeed()
  now = 6_999
  t.not(health.reports()[0]?.keys[0]?.resting_until, null)
  now = 7_000
  t.equal(health.reports()[0]?.keys[0]?.resting_until, null)
})

t.test('a clock that is set back by hours lets no key rest for hours', async (t) => {
  let now = 10 * MAX_KEY_REST_MS
  const health = new ChannelHealth(() => now)
  const call = new RunningCall({ ...POOL, health })
  call.attempt.refuse(429)
  call.attempt.succeed()
  t.not(health.reports()[0]?.keys[0]?.resting_until, null)
  now = 0
  t.equal(health.reports()[0]?.keys[0]?.resting_until, null)
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
    call.health.reports()[0]?.keys.map(({ resting_until }) => resting_until),
    [null, null, null],
  )
})
