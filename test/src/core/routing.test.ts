/** Which channel takes a call, and how many calls are admitted. */
import fc from 'fast-check'
import t from 'tap'
import { AnswerCache, type AnswerCacheOptions } from '../../../src/core/answer-cache.ts'
import { LimiterState, type Limits } from '../../../src/core/limits/limiter-state.ts'
import { GRAIN_MS, RateWindow, WINDOW_MS } from '../../../src/core/limits/rate-window.ts'
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

t.test('never more than the limit in a minute', async (t) => {
  const perMinute = (requestsPerMinute: number): Limits => ({ requestsPerMinute, concurrency: null })
  const atOnce = (concurrency: number): Limits => ({ requestsPerMinute: null, concurrency })
  const NONE = { refusedBy: null }
  const decide = (state: LimiterState, subject: string, limits: Limits, holder: string, now: number) =>
    state.decide([{ subject, limits }], holder, now)[0]!

  t.test('a request leaves the window 60 s after it entered, to the millisecond', async (t) => {
    const window = new RateWindow()
    window.add(1_000)
    window.add(5_000, 2)
    t.equal(window.count(5_000), 3)
    t.equal(window.count(1_000 + WINDOW_MS - 1), 3)
    t.equal(window.count(1_000 + WINDOW_MS), 2)
    t.equal(window.count(5_000 + WINDOW_MS - 1), 2)
    t.equal(window.count(5_000 + WINDOW_MS), 0)
  })

  t.test('what was admitted elsewhere may be heard of late, and counts from when it was', async (t) => {
    const window = new RateWindow()
    window.add(50_000)
    window.add(10_000, 3)
    window.add(30_000)
    t.equal(window.count(60_000), 5)
    t.equal(window.count(10_000 + WINDOW_MS), 2)
    t.equal(window.count(30_000 + WINDOW_MS), 1)
    t.equal(window.msUntilFree(1, 90_000), 50_000 + WINDOW_MS - 90_000)
  })

  t.test('a place is free when enough have left, also where the limit was lowered', async (t) => {
    const window = new RateWindow()
    for (const time of [0, 1_000, 2_000, 3_000]) window.add(time)
    t.equal(window.msUntilFree(10, 3_000), WINDOW_MS - 3_000, 'the next place, where there are others')
    t.equal(window.msUntilFree(4, 3_000), WINDOW_MS - 3_000)
    t.equal(window.msUntilFree(2, 3_000), WINDOW_MS - 1_000)
    t.equal(new RateWindow().msUntilFree(4, 3_000), 0)
  })

  t.test(
    'requests of one grain leave together, with the last; those of the next grain on their own',
    async (t) => {
      const window = new RateWindow()
      for (const time of [GRAIN_MS, 2 * GRAIN_MS - 1, 2 * GRAIN_MS]) window.add(time)
      t.equal(window.count(GRAIN_MS + WINDOW_MS), 3, 'late by less than a grain')
      t.equal(window.count(2 * GRAIN_MS - 1 + WINDOW_MS), 1)
      t.equal(window.count(2 * GRAIN_MS + WINDOW_MS), 0)
      window.add(100_001)
      t.equal(window.count(100_001), 1, 'one that left is not joined')
    },
  )

  t.test('what was taken back is counted no more, and others are', async (t) => {
    const window = new RateWindow()
    window.add(1_000, 2)
    window.add(2_000)
    window.add(3_000)
    window.remove(2_000)
    t.equal(window.count(3_000), 3)
    window.remove(1_000)
    t.equal(window.count(3_000), 2)
    t.equal(window.msUntilFree(1, 3_000), WINDOW_MS, 'the last of two')
    window.remove(4_000)
    t.equal(window.count(3_000), 2, 'none entered so late')
    t.equal(window.count(1_000 + WINDOW_MS), 1)
    t.equal(window.count(3_000 + WINDOW_MS), 0)
    window.remove(3_000)
    t.equal(window.count(3_000 + WINDOW_MS), 0, 'none is taken out that has left')
  })

  t.test('the wait is never over 60 s nor nothing, at any fraction of a millisecond', async (t) => {
    const instants = fc.double({ min: 0, max: 1e10, noNaN: true })
    const ages = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2 * WINDOW_MS, noNaN: true }))
    const property = fc.property(instants, ages, (time, age) => {
      const window = new RateWindow()
      window.add(time)
      const now = time + age
      const wait = window.msUntilFree(1, now)
      return window.count(now) === 0 ? wait === 0 : wait > 0 && wait <= WINDOW_MS
    })
    fc.assert(property, { numRuns: 10_000 })
    t.pass()
  })

  t.test('no 60 s hold more than the limit, whenever requests come', async (t) => {
    const gaps = fc.array(fc.oneof(fc.nat(30), fc.nat(4_000), fc.nat(100_000)), { maxLength: 300 })
    const property = fc.property(gaps, fc.integer({ min: 1, max: 12 }), (times, limit) => {
      const book = new LimiterState()
      const admitted: number[] = []
      let now = 0
      for (const gap of times) {
        now += gap
        const { refusedBy, remainingRequests, resetMs } = decide(book, 'acc', perMinute(limit), 'me', now)
        const recent = admitted.filter((time) => time > now - WINDOW_MS)
        if (refusedBy === null) {
          admitted.push(now)
          if (recent.length >= limit) return false
          // The grain keeps a place for longer, never for less long.
          if (remainingRequests > limit - recent.length - 1) return false
        } else {
          const held = admitted.filter((time) => time > now - WINDOW_MS - GRAIN_MS)
          if (held.length < limit) return false
          if (resetMs <= 0 || resetMs > WINDOW_MS) return false
          if (decide(book, 'acc', perMinute(limit), 'me', now + resetMs - 0.5).refusedBy === null)
            return false
        }
      }
      return admitted.every(
        (time, at) => (admitted[at + limit] ?? Number.POSITIVE_INFINITY) - time >= WINDOW_MS,
      )
    })
    fc.assert(property, { numRuns: 300 })
    t.pass()
  })

  t.test('a minute of many requests takes little room, and an idle one none', async (t) => {
    const book = new LimiterState()
    for (let at = 0; at < 100_000; at++) decide(book, `acc${at % 10}`, perMinute(50_000), 'me', at / 2)
    t.equal(book.size, 10)
    book.sweep(50_000 + WINDOW_MS)
    t.equal(book.size, 0)
  })

  t.test('slots are counted over all holders, and free when a holder is gone', async (t) => {
    const book = new LimiterState()
    const limits = atOnce(3)
    t.match(decide(book, 'acc', limits, 'a', 0), { refusedBy: null, remainingConcurrency: 2 })
    t.match(decide(book, 'acc', limits, 'b', 0), NONE)
    t.match(decide(book, 'acc', limits, 'b', 0), { refusedBy: null, remainingConcurrency: 0 })
    t.match(decide(book, 'acc', limits, 'a', 0), { refusedBy: 'concurrency', remainingConcurrency: 0 })
    t.match(decide(book, 'other', limits, 'a', 0), NONE, 'others are not concerned')
    t.same(book.listHolders('acc'), ['a', 'b'])
    book.release('acc', 'b')
    t.match(decide(book, 'acc', limits, 'a', 0), NONE)
    book.dropHolder('b')
    t.equal(book.countInFlight('acc'), 2)
    book.release('acc', 'b', 5)
    t.equal(book.countInFlight('acc'), 2, 'what is not held cannot be released')
    book.setSlots('a', new Map([['acc', 1]]))
    t.equal(book.countInFlight('acc'), 1)
    t.equal(book.countInFlight('other'), 0)
    book.release('acc', 'a')
    t.equal(book.size, 0)
  })

  t.test('a request that is refused in one dimension takes nothing in the other', async (t) => {
    const book = new LimiterState()
    const both = { requestsPerMinute: 2, concurrency: 1 }
    t.match(decide(book, 'acc', both, 'a', 0), NONE)
    t.match(decide(book, 'acc', both, 'a', 1), { refusedBy: 'concurrency', remainingRequests: 1 })
    book.release('acc', 'a')
    t.match(decide(book, 'acc', both, 'a', 2), NONE)
    book.release('acc', 'a')
    t.match(decide(book, 'acc', both, 'a', 3), { refusedBy: 'requests', remainingConcurrency: 1 })
    t.equal(book.countInFlight('acc'), 0)
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
