import t from 'tap'
import { OpenCalls } from '../../../src/journal/open-calls.ts'

const STEPS = 2_000

t.test('what is open is what was added and not taken out, in whatever order calls end', (t) => {
  const calls = new OpenCalls<{ place: number; name: number }>()
  const expected = new Map<number, { place: number; name: number }>()
  const gone: { place: number; name: number }[] = []
  for (let step = 0; step < STEPS; step++) {
    const call = { place: 0, name: step }
    calls.add(call)
    expected.set(step, call)
    // The last, the first and one between them end; now and then all do.
    const rest = [...expected.values()]
    for (const ended of step % 600 === 599
      ? rest
      : [[rest.at(-1), rest[0], rest[rest.length >> 1]][step % 3]]) {
      if (step % 5 === 0 || ended === undefined || !expected.delete(ended.name)) continue
      if (!calls.delete(ended)) t.fail('an open call can be taken out')
      gone.push(ended)
    }
    if (gone.some((ended, at) => at > gone.length - 5 && calls.delete(ended))) t.fail('once only')
    if (calls.size !== expected.size) t.fail(`${calls.size} are open, not ${expected.size}`)
  }
  t.same(new Set(calls.all), new Set(expected.values()))
  t.ok(calls.size > 0 && gone.length > STEPS / 2)
  calls.clear()
  t.equal(calls.size, 0)
  t.end()
})
