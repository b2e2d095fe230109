/** How one channel is chosen among those of one priority. */
import t from 'tap'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { MODEL, RunningCall } from './forward-support.ts'

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
    health.latencies.took(routeTo('slow'), 10_000)
    health.latencies.took(routeTo('fast'), 10)
  }
  for (let i = 0; i < 5; i++) t.equal(servedBy(options), 'fast')
  t.equal(servedBy({ ...options, random: () => 0.01 }), 'slow', 'a few calls measure the others')
})

t.test('by default equals share by weight', async (t) => {
  const options = { channels: ['a', 'b'], channelFields: { a: { priority: 0 }, b: { priority: 0 } } }
  t.equal(servedBy({ ...options, random: () => 0.1 }), 'a')
  t.equal(servedBy({ ...options, random: () => 0.9 }), 'b')
})
