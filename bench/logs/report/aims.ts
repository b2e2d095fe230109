/** The aims of the call log. */
import type { Aim } from '../../report/aim.ts'
import { FIRST_PAGE, OLD_PAGE, YEAR, YOUNG_PAGE } from '../queries/queries.ts'
import { type LogResults, type Measured, readMeasured } from './results.ts'

export const PAGE_LIMIT_MS = 50
export const YEAR_LIMIT_MS = 100
/** From the click to the rows on the screen. */
const SCREEN_LIMIT_MS = 300
/** The largest ratio of two medians that should be equal, on a machine with other work. */
const ALIKE_TIMES = 2
/** The same for rows read: ClickHouse reads whole granules, and more of them where there are many parts. */
const ALIKE_READ_TIMES = 4

const isLog = ({ engine }: Measured): boolean => engine !== 'postgres'

/** Returns the row with the largest 99th percentile, or null for an empty list. */
const slowest = (rows: readonly Measured[]): Measured | null =>
  rows.reduce<Measured | null>(
    (worst, row) => (worst === null || row.p99Ms > worst.p99Ms ? row : worst),
    null,
  )

/** Returns the ratio of the larger to the smaller. */
const apart = (one: number | null | undefined, other: number | null | undefined): number | null =>
  one == null || other == null || one === 0 || other === 0 ? null : Math.max(one / other, other / one)

const listPages = (results: LogResults): Measured[] => {
  const kinds = new Map(results.questions.map(({ name, kind }) => [name, kind]))
  return results.measured.filter((row) => isLog(row) && kinds.get(row.question) === 'page')
}

/** Returns pages over the limit, the slowest first. */
export const listSlowPages = (results: LogResults): Measured[] =>
  listPages(results)
    .filter(({ p99Ms }) => p99Ms > PAGE_LIMIT_MS)
    .sort((a, b) => b.p99Ms - a.p99Ms)

export const listAims = (results: LogResults): Aim[] => {
  const titles = new Map(results.questions.map(({ name, title }) => [name, title]))
  const worst = slowest(listPages(results))
  const year = slowest(
    results.measured.filter((row) => isLog(row) && row.question === YEAR && row.account === 'largest'),
  )
  const of = (account: 'largest' | 'median', question: string) =>
    readMeasured(results, 'log', account, question)
  const where =
    worst === null ? '' : ` (${titles.get(worst.question)}, ${worst.account} account, ${worst.engine})`
  return [
    {
      title: `every page, 99th percentile: the slowest${where}`,
      limit: PAGE_LIMIT_MS,
      unit: 'ms',
      value: worst?.p99Ms ?? null,
    },
    {
      title: 'summary of 365 days, largest account, 99th percentile',
      limit: YEAR_LIMIT_MS,
      unit: 'ms',
      value: year?.p99Ms ?? null,
    },
    {
      title: 'first page of 30 days, largest account against median account, median time',
      limit: ALIKE_TIMES,
      unit: 'x',
      value: apart(of('largest', FIRST_PAGE)?.p50Ms, of('median', FIRST_PAGE)?.p50Ms),
    },
    {
      title: 'first page of all time, largest account against median account, median time',
      limit: ALIKE_TIMES,
      unit: 'x',
      value: apart(of('largest', OLD_PAGE)?.p50Ms, of('median', OLD_PAGE)?.p50Ms),
    },
    {
      title: 'first page of all time against the one at 1 % of the history, largest account, median time',
      limit: ALIKE_TIMES,
      unit: 'x',
      value: apart(of('largest', OLD_PAGE)?.p50Ms, of('largest', YOUNG_PAGE)?.p50Ms),
    },
    {
      title: 'the same, rows read',
      limit: ALIKE_READ_TIMES,
      unit: 'x',
      value: apart(of('largest', OLD_PAGE)?.readRows, of('largest', YOUNG_PAGE)?.readRows),
    },
    {
      title: `first page of Calls in the browser, from the click to the rows, largest account, the slowest of ${results.browser.samples}`,
      limit: SCREEN_LIMIT_MS,
      unit: 'ms',
      value: results.browser.maxMs,
    },
    {
      title: 'the same, median',
      limit: SCREEN_LIMIT_MS,
      unit: 'ms',
      value: results.browser.p50Ms,
    },
  ]
}
