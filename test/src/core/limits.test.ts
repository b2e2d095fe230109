/** How many calls are admitted, and how much memory answers take. */
import fc from 'fast-check'
import t from 'tap'
import {
  AnswerMemory,
  FREE_BYTES,
  HeldAnswer,
  MAX_KEPT_ANSWER_BYTES,
} from '../../../src/core/limits/answer-memory.ts'
import { LimiterState, type Limits } from '../../../src/core/limits/limiter-state.ts'
import { GRAIN_MS, RateWindow, WINDOW_MS } from '../../../src/core/limits/rate-window.ts'

t.test('how long a minute is, and how much memory answers take', async (t) => {
  const MIB = 1024 * 1024

  t.test('a minute is 60 s, and requests of 10 ms are one', async (t) => {
    const window = new RateWindow()
    for (const time of [1_000, 1_009, 1_010]) window.add(time)
    t.same(
      [60_999, 61_008, 61_009, 61_010].map((now) => window.count(now)),
      [3, 3, 1, 0],
    )
  })

  t.test('what has left is thrown away, and nothing else', async (t) => {
    const window = new RateWindow()
    for (let second = 0; second < 400; second++) {
      window.add(second * 1_000, 1 + (second % 7))
      const last = Array.from({ length: Math.min(second + 1, 60) }, (_, ago) => 1 + ((second - ago) % 7))
      t.equal(
        window.count(second * 1_000),
        last.reduce((sum, count) => sum + count),
      )
    }
    const late = new RateWindow()
    late.add(0, 3)
    t.equal(late.count(60_000), 0)
    late.add(-5)
    t.equal(
      late.count(60_000),
      0,
      'what comes so late that it has left counts no more, and nothing else counts again',
    )
  })

  t.test('only the last request and one of its grain are one', async (t) => {
    const late = new RateWindow()
    for (const time of [100, 150, 105]) late.add(time)
    t.same(
      [60_100, 60_105, 60_150].map((now) => late.count(now)),
      [2, 1, 0],
    )
    const left = new RateWindow()
    left.add(0)
    t.equal(left.count(60_000), 0)
    left.add(5)
    t.same(
      [60_000, 60_005].map((now) => left.count(now)),
      [1, 0],
    )
  })

  t.test('a place that was taken back is none to wait for', async (t) => {
    const window = new RateWindow()
    for (const time of [1_000, 2_000]) window.add(time)
    window.remove(1_000)
    t.equal(window.msUntilFree(10, 2_000), 60_000)
  })

  t.test('an answer is kept up to 8 MiB, and a MiB of it takes nothing from others', async (t) => {
    t.same([MAX_KEPT_ANSWER_BYTES, FREE_BYTES], [8 * MIB, MIB])
  })

  t.test('all answers of an account take 32 MiB at most, and those of all accounts 64', async (t) => {
    const memory = new AnswerMemory()
    t.ok(memory.take('acc_a', 32 * MIB - 1))
    t.notOk(memory.take('acc_a', 2))
    t.ok(memory.take('acc_a', 1))
    t.ok(memory.take('acc_b', 32 * MIB))
    t.notOk(memory.take('acc_c', 1))
    memory.release('acc_a', 1)
    t.ok(memory.take('acc_a', 1), 'what was refused took nothing')
    memory.release('acc_a', 32 * MIB)
    t.ok(memory.take('acc_a', 32 * MIB))
    memory.release('acc_a', 32 * MIB - 1)
    t.notOk(memory.take('acc_a', 32 * MIB), 'a byte is still held')
    t.ok(memory.take('acc_a', 32 * MIB - 1))
  })

  t.test('a long answer takes what it has beyond a MiB, once, until it is released', async (t) => {
    const memory = new AnswerMemory()
    memory.take('acc', 32 * MIB - 10)
    const held = new HeldAnswer(memory, 'acc')
    t.ok(held.grow(MIB + 4))
    t.ok(held.grow(MIB + 4), 'the same answer')
    t.notOk(held.grow(MIB + 11))
    const full = new AnswerMemory()
    full.take('acc', 32 * MIB)
    t.notOk(new HeldAnswer(full, 'acc').grow(MIB + 1), 'not even by a byte')
    t.ok(held.grow(MIB + 10))
    t.ok(held.grow(3), 'it never becomes shorter')
    t.notOk(memory.take('acc', 1))
    held.release()
    held.release()
    t.ok(memory.take('acc', 10))
    t.notOk(memory.take('acc', 1), 'released once')
    const short = new HeldAnswer(memory, 'acc')
    t.ok(short.grow(MIB), 'where there is no room as well')
    short.release()
    t.notOk(memory.take('acc', 1))
    const unused = new AnswerMemory()
    new HeldAnswer(unused, 'acc').release()
    t.ok(unused.take('acc', 32 * MIB), 'what held nothing gives nothing back')
  })
})

t.test('what a process knows of limits', async (t) => {
  const both: Limits = { requestsPerMinute: 3, concurrency: 2 }
  const decide = (state: LimiterState, limits: Limits, now = 0, subject = 'acc') =>
    state.decide([{ subject, limits }], 'me', now)[0]

  t.test('a decision says what is left, and when a place is free', async (t) => {
    const state = new LimiterState()
    t.same(decide(state, both), {
      ...{ refusedBy: null, remainingRequests: 2, resetMs: 60_000, remainingConcurrency: 1 },
    })
    t.same(decide(state, both, 100), {
      ...{ refusedBy: null, remainingRequests: 1, resetMs: 59_900, remainingConcurrency: 0 },
    })
    t.match(decide(state, both, 200), { refusedBy: 'concurrency', remainingRequests: 1, resetMs: 59_800 })
    t.same(decide(state, { requestsPerMinute: null, concurrency: 5 }, 200), {
      ...{ refusedBy: null, remainingRequests: 0, resetMs: 0, remainingConcurrency: 2 },
    })
    t.same(decide(state, { requestsPerMinute: 1, concurrency: null }, 200), {
      ...{ refusedBy: 'requests', remainingRequests: 0, resetMs: 59_900, remainingConcurrency: 0 },
    })
  })

  t.test('a request that others leave no slot for has all of its minute', async (t) => {
    const state = new LimiterState()
    state.setSlots('other', new Map([['acc', 2]]))
    t.same(decide(state, both), {
      ...{ refusedBy: 'concurrency', remainingRequests: 3, resetMs: 0, remainingConcurrency: 0 },
    })
  })

  t.test('all subjects of a request admit it, or it takes nothing of any', async (t) => {
    const state = new LimiterState()
    const tight: Limits = { requestsPerMinute: null, concurrency: 1 }
    const subjects = [
      { subject: 'key', limits: both },
      { subject: 'acc', limits: tight },
    ]
    t.same(
      state.decide(subjects, 'me', 0).map(({ refusedBy }) => refusedBy),
      [null, null],
    )
    t.match(state.decide(subjects, 'me', 0), [
      { refusedBy: null, remainingRequests: 2 },
      { refusedBy: 'concurrency' },
    ])
    t.equal(state.countInFlight('key'), 1)
  })

  t.test('a request that is withdrawn gives back its place in the minute and its slot', async (t) => {
    const state = new LimiterState()
    state.admit('acc', both, 'other', 0)
    state.withdraw('acc', both, 'other', 0)
    t.same([state.countInFlight('acc'), state.listHolders('acc')], [0, []])
    t.match(decide(state, both), { remainingRequests: 2, remainingConcurrency: 1 })
    state.withdraw('acc', { requestsPerMinute: null, concurrency: null }, 'me', 0)
    t.match(decide(state, both), { remainingRequests: 1, remainingConcurrency: 0 }, 'only what it took')
    state.withdraw('unknown', both, 'me', 0)
    t.equal(state.size, 1)
  })

  t.test('requests that others admitted count from when they were', async (t) => {
    const state = new LimiterState()
    state.noteRequests('acc', 2, 0)
    t.match(decide(state, both, 59_999), { refusedBy: null, remainingRequests: 0, resetMs: 1 })
    t.match(decide(state, both, 60_000), { refusedBy: null, remainingRequests: 1 })
  })

  t.test('slots are listed by holder', async (t) => {
    const state = new LimiterState()
    t.same([...state.listSlots('me')], [])
    state.setSlots(
      'me',
      new Map([
        ['acc', 2],
        ['key', 1],
      ]),
    )
    t.same(
      [...state.listSlots('me')],
      [
        ['acc', 2],
        ['key', 1],
      ],
    )
    state.setSlots('other', new Map([['acc', 1]]))
    t.same([state.listHolders('key'), state.listHolders('acc')], [['me'], ['me', 'other']])
    state.dropHolder('other')
    state.release('acc', 'me')
    t.same(
      [...state.listSlots('me')],
      [
        ['acc', 1],
        ['key', 1],
      ],
    )
    state.release('acc', 'me', 7)
    t.equal(state.countInFlight('acc'), 0)
    state.setSlots('me', new Map())
    t.equal(state.size, 0)
    state.dropHolder('nobody')
    t.equal(state.size, 0)
  })

  t.test('a subject is known while it has slots or requests of the last minute', async (t) => {
    const state = new LimiterState()
    decide(state, both, 0, 'in flight')
    decide(state, { requestsPerMinute: 9, concurrency: null }, 0, 'of the minute')
    t.equal(state.size, 2)
    state.sweep(59_999)
    t.equal(state.size, 2)
    state.sweep(60_000)
    t.equal(state.size, 1)
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
