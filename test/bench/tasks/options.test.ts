import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { FULL_TASKS, parseOptions } from '../../../bench/tasks/options.ts'

const RUN = fileURLToPath(new URL('../../../bench/tasks/run.ts', import.meta.url))

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

t.test('wrong usage exits 2 and starts nothing; help exits 0', async (t) => {
  const wrong = spawnSync(process.execPath, [RUN, '--tasks', 'none'], { encoding: 'utf8' })
  t.equal(wrong.status, 2)
  t.match(wrong.stderr, '"none"')
  const help = spawnSync(process.execPath, [RUN, '--help'], { encoding: 'utf8' })
  t.equal(help.status, 0)
  t.match(help.stdout, '--tasks')
})
