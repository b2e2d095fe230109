import t from 'tap'
import { COMPARED_PAGES, FULL_PAGES, parseOptions } from '../../../bench/search/options.ts'

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
