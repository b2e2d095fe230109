import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { COMPARED_PAGES, FULL_PAGES, parseOptions } from '../../../bench/search/options.ts'

const RUN = fileURLToPath(new URL('../../../bench/search/run.ts', import.meta.url))

t.test('without options it is a small run', async (t) => {
  t.match(parseOptions([]), { pages: COMPARED_PAGES, seed: 1, out: null, help: false })
})

t.test('the full size can be asked for in thousands', async (t) => {
  t.equal(parseOptions(['--pages', '100k']).pages, FULL_PAGES)
  t.equal(parseOptions(['--pages', '7_500']).pages, 7_500)
})

t.test('wrong usage is an error', async (t) => {
  for (const value of ['0', '100', '1000k', 'many'])
    t.throws(() => parseOptions(['--pages', value]), { message: value })
  t.throws(() => parseOptions(['--seed', 'x']), /--seed/)
  t.throws(() => parseOptions(['--fast']), /--fast/)
})

t.test('wrong usage exits 2 and starts nothing; help exits 0', async (t) => {
  const wrong = spawnSync(process.execPath, [RUN, '--pages', 'none'], { encoding: 'utf8' })
  t.equal(wrong.status, 2)
  t.match(wrong.stderr, '"none"')
  const help = spawnSync(process.execPath, [RUN, '--help'], { encoding: 'utf8' })
  t.equal(help.status, 0)
  t.match(help.stdout, '--pages')
})
