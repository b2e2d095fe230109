import t from 'tap'
import { ChannelHealth, FAILURES_IN_A_ROW, OPEN_MS } from '../../../src/core/routing/circuit-breaker.ts'
import { MIN_RETRIES, RetryBudget } from '../../../src/core/routing/retry-budget.ts'

const BOTH = ['a', 'b']
const self = (id: string) => id

function failing(health: ChannelHealth, id: string, times = FAILURES_IN_A_ROW): void {
  for (let i = 0; i < times; i++) health.failed(id)
}

t.test('five failures in a row set a channel aside, four and a success do not', async (t) => {
  const health = new ChannelHealth(() => 0)
  failing(health, 'a', FAILURES_IN_A_ROW - 1)
  health.succeeded('a')
  failing(health, 'a', FAILURES_IN_A_ROW - 1)
  t.same(health.available(BOTH, self), BOTH)
  health.failed('a')
  t.same(health.available(BOTH, self), ['b'])
})

t.test('the last channel stays callable', async (t) => {
  const health = new ChannelHealth(() => 0)
  for (const id of BOTH) failing(health, id)
  t.same(health.available(BOTH, self), BOTH)
  t.same(health.available(['a'], self), ['a'])
})

t.test('after its rest one call at a time probes: a failure rests longer, a success ends it', async (t) => {
  let now = 0
  const health = new ChannelHealth(() => now)
  failing(health, 'a')
  now = OPEN_MS - 1
  t.same(health.available(BOTH, self), ['b'])
  now = OPEN_MS
  t.same(health.available(BOTH, self), BOTH)
  health.began('a')
  t.same(health.available(BOTH, self), ['b'], 'a second call does not probe meanwhile')
  health.failed('a')
  now += 2 * OPEN_MS - 1
  t.same(health.available(BOTH, self), ['b'], 'the second rest is twice as long')
  now += 1
  health.began('a')
  health.abandoned('a')
  t.same(health.available(BOTH, self), BOTH, 'a probe whose client left is tried again')
  health.began('a')
  health.succeeded('a')
  t.same(health.available(BOTH, self), BOTH)
  t.equal(health.breaker('a'), 'closed')
})

t.test('a clock that is set back keeps no breaker open, and no probe under way', async (t) => {
  let now = 1_000_000
  const health = new ChannelHealth(() => now)
  failing(health, 'a')
  t.equal(health.breaker('a'), 'open')
  now = 1_000
  t.equal(health.breaker('a'), 'half-open')
  health.began('a')
  t.equal(health.breaker('a'), 'open')
  now = 0
  t.equal(health.breaker('a'), 'half-open')
  failing(health, 'a')
  t.equal(health.breaker('a'), 'open')
})

t.test('calls under way when the breaker opened do not lengthen its open time', async (t) => {
  let now = 0
  const health = new ChannelHealth(() => now)
  failing(health, 'a', 3 * FAILURES_IN_A_ROW)
  now = OPEN_MS
  t.same(health.available(BOTH, self), BOTH)
})

t.test('retries are at most a fifth of the active calls, and at least three', async (t) => {
  const budget = new RetryBudget()
  for (let i = 0; i < MIN_RETRIES; i++) t.ok(budget.take())
  t.notOk(budget.take())
  for (let i = 0; i < 20; i++) budget.callBegan()
  t.ok(budget.take(), 'four of twenty')
  t.notOk(budget.take())
  budget.retryEnded()
  t.ok(budget.take())
})

t.test('no call goes to a held channel, not even where every other breaker is open', async (t) => {
  const health = new ChannelHealth(() => 0)
  failing(health, 'b')
  health.hold(new Map([['a', 'paused']]))
  t.same(health.available(BOTH, self), ['b'])
  t.same(health.available(['a'], self), [])
  t.same(health.active(BOTH, self), ['b'])
  t.equal(health.state('a'), 'paused')
  health.hold(new Map())
  t.same(health.available(BOTH, self), ['a'])
})

t.test('a report counts what is under way, and has latencies and the changes of the breaker', async (t) => {
  let now = 0
  const health = new ChannelHealth(() => now)
  const report = () => health.reports()[0]
  health.began('a')
  health.began('a')
  t.match(report(), { in_flight: 2, latency_p50_ms: null, latency_p99_ms: null, history: { length: 0 } })
  health.succeeded('a', 10)
  health.abandoned('a')
  for (let i = 0; i < 98; i++) {
    health.began('a')
    health.succeeded('a', 20)
  }
  health.began('a')
  health.succeeded('a', 3_000)
  t.match(report(), { in_flight: 0, latency_p50_ms: 20, latency_p99_ms: 20 })
  for (let i = 0; i < FAILURES_IN_A_ROW; i++) {
    health.began('a')
    health.failed('a')
  }
  now = OPEN_MS
  health.began('a')
  health.succeeded('a')
  t.same(report()?.history, [
    { at: new Date(0).toISOString(), breaker: 'open' },
    { at: new Date(OPEN_MS).toISOString(), breaker: 'closed' },
  ])
  // A fault that is found after the end of an attempt ends no other one.
  health.faulted('a')
  t.match(report(), { in_flight: 0, recent_failures: FAILURES_IN_A_ROW + 1 })
})
