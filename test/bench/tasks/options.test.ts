import t from 'tap'
import { FULL_TASKS, parseOptions } from '../../../bench/tasks/options.ts'

t.test('without options it is a small run', async (t) => {
  t.match(parseOptions([]), { tasks: 1_000, seed: 1, out: null, help: false })
})

t.test('a full run waits until polls have reached their longest interval', async (t) => {
  const { tasks, ageMs } = parseOptions(['--tasks', '10k'])
  t.equal(tasks, FULL_TASKS)
  t.equal(ageMs, 100_000)
  t.equal(parseOptions(['--tasks', '2_500']).tasks, 2_500)
})

t.test('wrong usage is an error', async (t) => {
  for (const value of ['0', '1.5', '60k', 'many'])
    t.throws(() => parseOptions(['--tasks', value]), { message: value })
  t.throws(() => parseOptions(['--seed', 'x']), /--seed/)
  t.throws(() => parseOptions(['--fast']), /--fast/)
})
