import t from 'tap'
import type { EngineName } from '../../../bench/logs/engines/engine.ts'
import { FIRST_PAGE, OLD_PAGE, QUESTIONS, YEAR, YOUNG_PAGE } from '../../../bench/logs/queries/queries.ts'
import { aimsOf, slowPagesOf } from '../../../bench/logs/report/aims.ts'
import type { AccountName, LogResults, Measured } from '../../../bench/logs/report/results.ts'
import { isMet } from '../../../bench/report/aim.ts'

const row = (
  engine: EngineName,
  account: AccountName,
  question: string,
  p50Ms: number,
  p99Ms: number,
): Measured => ({
  engine,
  account,
  question,
  p50Ms,
  p99Ms,
  maxMs: p99Ms,
  samples: 10,
  rows: 50,
  first: null,
  readRows: 1_000,
})

const BROWSER = { samples: 30, p50Ms: 150, p99Ms: 310, maxMs: 310 }

const resultsOf = (measured: readonly Measured[]): LogResults =>
  ({ measured, questions: QUESTIONS, browser: BROWSER }) as unknown as LogResults

const results = (measured: readonly Measured[]) =>
  aimsOf(resultsOf(measured)).map((aim) => [aim.value, isMet(aim)])

t.test('what was not measured is neither met nor missed', async (t) => {
  t.same(results([]).slice(0, -2), Array(6).fill([null, null]))
})

t.test('the slowest page of Tollgate counts, not PostgreSQL and not other answers', async (t) => {
  const measured = [
    row('log', 'largest', FIRST_PAGE, 10, 40),
    row('http', 'median', 'ref', 11, 51),
    row('log', 'median', 'rare', 12, 90),
    row('postgres', 'largest', 'rare', 800, 900),
    row('log', 'largest', 'detail', 30, 300),
    row('http', 'largest', YEAR, 70, 99),
    row('log', 'largest', YEAR, 60, 80),
    row('log', 'median', YEAR, 60, 800),
  ]
  const [page, year] = results(measured)
  t.same(page, [90, false])
  t.same(year, [99, true])
  t.same(
    slowPagesOf(resultsOf(measured)).map(({ question, p99Ms }) => [question, p99Ms]),
    [
      ['rare', 90],
      ['ref', 51],
    ],
  )
})

t.test('the slowest page on the screen counts', async (t) => {
  t.same(results([]).slice(-2), [
    [310, false],
    [150, true],
  ])
})

t.test('costs that should be alike may be off neither way', async (t) => {
  const pages = (largest: number, median: number) => [
    row('log', 'largest', OLD_PAGE, largest, 1),
    row('log', 'median', OLD_PAGE, median, 1),
    row('log', 'largest', YOUNG_PAGE, largest, 1),
  ]
  t.same(results(pages(10, 19))[3], [1.9, true])
  t.same(results(pages(10, 40))[3], [4, false])
  t.same(results(pages(40, 10))[3], [4, false])
  t.same(results(pages(10, 40))[4], [1, true])
  t.same(results(pages(10, 40))[5], [1, true])
})
