/** Answers that are kept: for how long, how many, and what becomes of the work behind one that nobody waits for. */
import t from 'tap'
import { AnswerCache, type AnswerCacheOptions } from '../../../src/core/answer-cache.ts'

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
