/** Which channel takes a call. */
import t from 'tap'
import { AnswerCache, type AnswerCacheOptions } from '../../../src/core/answer-cache.ts'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'
import { ChannelHealth, FAILURES_IN_A_ROW, OPEN_MS } from '../../../src/core/routing/circuit-breaker.ts'
import { MIN_RETRIES, RetryBudget } from '../../../src/core/routing/retry-budget.ts'

t.test('circuit breaker opens and probes', async (t) => {
  const BOTH = ['a', 'b']
  const self = (id: string) => id

  function failing(health: ChannelHealth, id: string, times = FAILURES_IN_A_ROW): void {
    for (let i = 0; i < times; i++) health.noteFailure(id)
  }

  t.test('five failures in a row set a channel aside, four and a success do not', async (t) => {
    const health = new ChannelHealth(() => 0)
    failing(health, 'a', FAILURES_IN_A_ROW - 1)
    health.noteSuccess('a')
    failing(health, 'a', FAILURES_IN_A_ROW - 1)
    t.same(health.listAvailable(BOTH, self), BOTH)
    health.noteFailure('a')
    t.same(health.listAvailable(BOTH, self), ['b'])
  })

  t.test('the last channel stays callable', async (t) => {
    const health = new ChannelHealth(() => 0)
    for (const id of BOTH) failing(health, id)
    t.same(health.listAvailable(BOTH, self), BOTH)
    t.same(health.listAvailable(['a'], self), ['a'])
  })

  t.test('after its rest one call at a time probes: a failure rests longer, a success ends it', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    failing(health, 'a')
    now = OPEN_MS - 1
    t.same(health.listAvailable(BOTH, self), ['b'])
    now = OPEN_MS
    t.same(health.listAvailable(BOTH, self), BOTH)
    health.begin('a')
    t.same(health.listAvailable(BOTH, self), ['b'], 'a second call does not probe meanwhile')
    health.noteFailure('a')
    now += 2 * OPEN_MS - 1
    t.same(health.listAvailable(BOTH, self), ['b'], 'the second rest is twice as long')
    now += 1
    health.begin('a')
    health.noteAbandoned('a')
    t.same(health.listAvailable(BOTH, self), BOTH, 'a probe whose client left is tried again')
    health.begin('a')
    health.noteSuccess('a')
    t.same(health.listAvailable(BOTH, self), BOTH)
    t.equal(health.readBreaker('a'), 'closed')
  })

  t.test('a clock that is set back keeps no breaker open, and no probe under way', async (t) => {
    let now = 1_000_000
    const health = new ChannelHealth(() => now)
    failing(health, 'a')
    t.equal(health.readBreaker('a'), 'open')
    now = 1_000
    t.equal(health.readBreaker('a'), 'half-open')
    health.begin('a')
    t.equal(health.readBreaker('a'), 'open')
    now = 0
    t.equal(health.readBreaker('a'), 'half-open')
    failing(health, 'a')
    t.equal(health.readBreaker('a'), 'open')
  })

  t.test('calls under way when the breaker opened do not lengthen its open time', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    failing(health, 'a', 3 * FAILURES_IN_A_ROW)
    now = OPEN_MS
    t.same(health.listAvailable(BOTH, self), BOTH)
  })

  t.test('retries are at most a fifth of the active calls, and at least three', async (t) => {
    const budget = new RetryBudget()
    for (let i = 0; i < MIN_RETRIES; i++) t.ok(budget.take())
    t.notOk(budget.take())
    for (let i = 0; i < 20; i++) budget.beginCall()
    t.ok(budget.take(), 'four of twenty')
    t.notOk(budget.take())
    budget.retryEnded()
    t.ok(budget.take())
  })

  t.test('no call goes to a held channel, not even where every other breaker is open', async (t) => {
    const health = new ChannelHealth(() => 0)
    failing(health, 'b')
    health.hold(new Map([['a', 'paused']]))
    t.same(health.listAvailable(BOTH, self), ['b'])
    t.same(health.listAvailable(['a'], self), [])
    t.same(health.listActive(BOTH, self), ['b'])
    t.equal(health.readState('a'), 'paused')
    health.hold(new Map())
    t.same(health.listAvailable(BOTH, self), ['a'])
  })

  t.test('a report counts what is under way, and has latencies and the changes of the breaker', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    const report = () => health.listReports()[0]
    health.begin('a')
    health.begin('a')
    t.match(report(), { in_flight: 2, latency_p50_ms: null, latency_p99_ms: null, history: { length: 0 } })
    health.noteSuccess('a', 10)
    health.noteAbandoned('a')
    for (let i = 0; i < 98; i++) {
      health.begin('a')
      health.noteSuccess('a', 20)
    }
    health.begin('a')
    health.noteSuccess('a', 3_000)
    t.match(report(), { in_flight: 0, latency_p50_ms: 20, latency_p99_ms: 20 })
    for (let i = 0; i < FAILURES_IN_A_ROW; i++) {
      health.begin('a')
      health.noteFailure('a')
    }
    now = OPEN_MS
    health.begin('a')
    health.noteSuccess('a')
    t.same(report()?.history, [
      { at: new Date(0).toISOString(), breaker: 'open' },
      { at: new Date(OPEN_MS).toISOString(), breaker: 'closed' },
    ])
    // A fault that is found after the end of an attempt ends no other one.
    health.noteFault('a')
    t.match(report(), { in_flight: 0, recent_failures: FAILURES_IN_A_ROW + 1 })
  })
})

t.test('answered model is the requested one', async (t) => {
  // A snapshot of the model that was asked for is that model; another model is not.
  t.test('a name of one snapshot stands for a name that leaves it open', async (t) => {
    for (const [asked, answered] of [
      ['gpt-x', 'gpt-x'],
      ['gpt-x', 'gpt-x-2026-01-01'],
      ['gpt-x-latest', 'gpt-x-2026-01-01'],
      ['gpt-x-2026-01-01', 'gpt-x'],
      ['sonata-4-5', 'sonata-4-5-20250929'],
      ['sonata-4-5@20250929', 'sonata-4-5-20250929'],
      ['sonata-4-5@default', 'sonata-4-5-20250929'],
      ['flash-2.5-001@default', 'flash-2.5-001'],
      ['demo@tps=8,fault=reset:2000', 'demo'],
      ['@vendor/gpt-x', 'gpt-x'],
      ['flash-2.5', 'models/flash-2.5-001'],
      ['vendor/gpt-x', 'GPT-X'],
      ['gpt-4', 'gpt-4-0613'],
    ] as const)
      t.equal(isRequestedModel(asked, answered), true, `${asked}: ${answered}`)
  })

  t.test('another model, or another snapshot than the one asked for, is a difference', async (t) => {
    for (const [asked, answered] of [
      ['gpt-x', 'gpt-x-mini'],
      ['gpt-x', 'gpt-x-mini-2026-01-01'],
      ['gpt-x-2026-01-01', 'gpt-x-2025-01-01'],
      ['sonata-4', 'sonata-4-5'],
      ['gpt-x', ''],
      ['sonata-4@default', 'sonata-4-5'],
      ['demo@tps=8', 'demo@tps=9'],
    ] as const)
      t.equal(isRequestedModel(asked, answered), false, `${asked}: ${answered}`)
  })
})

t.test('answers are cached for a while', async (t) => {
  // Answers that are kept: for how long, how many, and what becomes of the work behind one that nobody waits for.
  /** A cache whose clock stands still, and work that ends when the test says so. */
  class Bench {
    readonly made: { readonly signal: AbortSignal; readonly end: (text: string | Error) => void }[] = []
    now = 1000
    readonly cache: AnswerCache

    constructor(bounds: Partial<AnswerCacheOptions> = {}) {
      this.cache = new AnswerCache({
        maxAgeMs: 60,
        maxEntries: 10,
        maxChars: 1000,
        now: () => this.now,
        ...bounds,
      })
    }

    ask(key: string) {
      const caller = new AbortController()
      const make = (signal: AbortSignal) =>
        new Promise<string>((resolve, reject) => {
          const end = (text: string | Error) => (text instanceof Error ? reject(text) : resolve(text))
          this.made.push({ signal, end })
        })
      return { answer: this.cache.get(key, make, caller.signal), leave: () => caller.abort() }
    }

    /** Asks, and ends the work; the caller leaves as the server does once it has answered. */
    async asked(key: string, text: string): Promise<string> {
      const before = this.made.length
      const { answer, leave } = this.ask(key)
      if (this.made.length > before) this.made.at(-1)!.end(text)
      const given = await answer
      leave()
      return given
    }
  }

  t.test('concurrent and later requests get the same answer until it is too old', async (t) => {
    const bench = new Bench()
    const [first, second] = [bench.ask('a'), bench.ask('a')]
    bench.made[0]!.end('1')
    t.same(await Promise.all([first.answer, second.answer]), ['1', '1'])
    bench.now += 60
    t.equal(await bench.asked('a', '2'), '1')
    t.equal(await bench.asked('b', '3'), '3', 'another key is another answer')
    bench.now += 1
    t.equal(await bench.asked('a', '4'), '4')
    t.equal(bench.made.length, 3)
  })

  t.test('the work goes on for as long as somebody waits', async (t) => {
    const bench = new Bench()
    const [first, second] = [bench.ask('a'), bench.ask('a')]
    first.leave()
    t.notOk(bench.made[0]!.signal.aborted)
    second.leave()
    t.ok(bench.made[0]!.signal.aborted, 'nobody does')
    const third = bench.ask('a')
    t.equal(bench.made.length, 2, 'the next request starts it again')
    bench.made[0]!.end(new Error('given up'))
    await t.rejects(first.answer)
    bench.made[1]!.end('2')
    t.equal(await third.answer, '2')
    t.equal(await bench.asked('a', '3'), '2', 'what was given up takes nothing away')
  })

  t.test('a failure goes to those who wait, and is not cached', async (t) => {
    const bench = new Bench()
    const [first, second] = [bench.ask('a'), bench.ask('a')]
    bench.made[0]!.end(new Error('away'))
    await t.rejects(first.answer, { message: 'away' })
    await t.rejects(second.answer, { message: 'away' })
    t.equal(await bench.asked('a', '1'), '1')
  })

  t.test('the oldest make way: of too many, and of too long ones', async (t) => {
    const few = new Bench({ maxEntries: 2 })
    for (const key of ['a', 'b', 'c']) await few.asked(key, key)
    t.equal(await few.asked('c', 'fresh'), 'c')
    t.equal(await few.asked('b', 'fresh'), 'b')
    t.equal(await few.asked('a', 'fresh'), 'fresh')
    const short = new Bench({ maxChars: 10 })
    await short.asked('a', 'x'.repeat(6))
    await short.asked('b', 'y'.repeat(6))
    t.equal(await short.asked('b', 'fresh'), 'y'.repeat(6))
    t.equal(await short.asked('a', 'fresh'), 'fresh')
  })
})
