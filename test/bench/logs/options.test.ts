import t from 'tap'
import { UsageError } from '../../../bench/harness/command-line.ts'
import { FULL_POSTGRES_ROWS, FULL_ROWS, KEEP, parseOptions } from '../../../bench/logs/options.ts'
import { describeProgress, Progress } from '../../../bench/logs/rows/progress.ts'

t.test('the full size by its name, a tenth of it in PostgreSQL', async (t) => {
  const { rows, postgresRows } = parseOptions(['--rows', '100m'])
  t.equal(rows, FULL_ROWS)
  t.equal(postgresRows, FULL_POSTGRES_ROWS)
})

t.test('a small size by default, and nothing is kept', async (t) => {
  const { rows, postgresRows, data, out, seed } = parseOptions([])
  t.same(
    { rows, postgresRows, data, out, seed },
    { rows: 1e6, postgresRows: 2e5, data: null, out: null, seed: 1 },
  )
})

t.test('sizes are numbers of rows with a suffix', async (t) => {
  const size = (...args: string[]) => {
    const { rows, postgresRows } = parseOptions(args)
    return [rows, postgresRows]
  }
  t.same(size('--rows', '250k'), [250_000, 200_000])
  t.same(size('--rows', '1.5M', '--postgres-rows', '10_000'), [1_500_000, 10_000])
  t.same(size('--rows', '50k'), [50_000, 50_000], 'no more than there are')
  t.same(size('--postgres-rows', '0'), [1e6, 0])
})

t.test('results are written to a separate folder, or to the one that the option names', async (t) => {
  t.equal(parseOptions(['--keep']).data, KEEP)
  t.equal(parseOptions(['--data', 'there']).data, 'there')
})

t.test('wrong usage is an error', async (t) => {
  const wrong = (args: string[]): unknown => {
    try {
      return parseOptions(args)
    } catch (error) {
      return error
    }
  }
  for (const args of [
    ['--rows', 'many'],
    ['--rows', '0'],
    ['--rows', '1.5'],
    ['--rows', '9999m'],
    ['--samples', '0'],
    ['--keep', '--data', 'there'],
    ['--fast'],
    ['small'],
  ])
    t.ok(wrong(args) instanceof UsageError, args.join(' '))
})

t.test('progress tells rows, their rate and the time that is left', async (t) => {
  t.equal(
    describeProgress(25_000_000, 100_000_000, 5_000_000, 200),
    '25,000,000 of 100,000,000 rows (25 %), 100,000 rows/s, 12 min 30 s left',
  )
  t.equal(describeProgress(5, 10, 5, 0), '5 of 10 rows (50 %), 0 rows/s')
})

t.test('a line that stays is on a line of its own, on a terminal too', async (t) => {
  const written: string[] = []
  const progress = new Progress({ isTTY: true, write: (text: string) => written.push(text) })
  progress.show('so far')
  progress.say('done')
  t.same(written, ['\r\x1b[Kso far', '\r\x1b[K', 'done\n'])
})
