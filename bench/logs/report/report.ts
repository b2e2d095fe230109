/** The report of a run: text, tables and a chart. */
import { aimsTable } from '../../report/aim.ts'
import type { Bar, Chart, Panel } from '../../report/chart.ts'
import { chartLine, type Report, runLines } from '../../report/report.ts'
import { figure, type Table } from '../../report/table.ts'
import type { EngineName } from '../engines/engine.ts'
import { CSV, FIRST_PAGE, OLD_PAGE, YEAR } from '../queries/queries.ts'
import { gibibytes } from '../rows/data-folder.ts'
import { listAims, listSlowPages, PAGE_LIMIT_MS, YEAR_LIMIT_MS } from './aims.ts'
import {
  ACCOUNT_NAMES,
  type AccountName,
  type BuiltSet,
  type LogResults,
  listEngines,
  type Measured,
  readMeasured,
} from './results.ts'

const ENGINE_TITLES: Readonly<Record<EngineName, string>> = {
  log: 'Tollgate',
  http: 'Tollgate, HTTP',
  postgres: 'PostgreSQL',
}

const METHOD = `One reader runs one query after the other; the time is from the request to the complete response. Each query is for
other rows, chosen by a seed. **Tollgate** is the call log's own functions, which query ClickHouse over HTTP;
**Tollgate, HTTP** is a \`GET\` to the gateway with a key, answered by the whole service; **PostgreSQL** is one plain table
(\`UNIQUE (id)\`, \`UNIQUE (request_id)\`, \`(task_id)\` where there is one, \`(account_id, created_at, id)\`,
\`(account_id, key_id, created_at, id)\`), freshly vacuumed, with keyset pagination. It has fewer rows, so its figures are
better than at equal size. All three run on this machine and share its cores.

- The rows are of 1,000 accounts over two years, skewed by Zipf's law: the largest account makes a tenth of the calls.
  The service's own migrations created the tables. Old parts are merged as after months on a server; the newest rows
  are in parts as small as the service books them.
- The files are in memory as far as they fit: the bench reads all once before the first query, and does not clear the
  cache between queries.
- **In the browser**: headless Chromium loads the account's home, then goes to Calls as its link does; the time ends when a
  frame with rows is drawn. It has the code of the page, its chart and its rows in it; the files come from the cache.
- **All time** ends in the last tenth of the two years. Filters that match very few rows are for all time.
- **Summaries** begin and end within a day, and no two are the same: no cache answers.
- **Read** is the median of the rows that ClickHouse read by its own counter (\`SelectedRows\`).
- All queries run in three rounds. A quantile is the nearest rank within a round, then the median of the three rounds: a
  slow phase of some seconds affects one of them.`

const millions = (rows: number): string =>
  rows >= 1e6
    ? `${(rows / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} M`
    : rows.toLocaleString('en-US')

const setLine = (name: string, { rows, bytes, seconds, reused, note }: BuiltSet): string => {
  const sizes = Object.entries(bytes).map(([what, size]) => `${what} ${gibibytes(size)}`)
  const made = `built in ${Math.round(seconds)} s${reused ? ' by an earlier run' : ''}`
  return `${name}: ${millions(rows)} rows, ${sizes.join(', ')}; ${made}${note === '' ? '' : `; ${note}`}`
}

const printLines = (results: LogResults): string[] => {
  const { versions, isFull, samples, seconds, accounts } = results
  const sizes = ACCOUNT_NAMES.map((account) => {
    const { log = 0, postgres } = accounts[account]
    const plain = postgres === undefined ? '' : ` (${millions(postgres)} in PostgreSQL)`
    return `${account} account ${millions(log)} rows${plain}`
  })
  const run = `${isFull ? 'full' : 'partial'} run in ${Math.round(seconds)} s, up to ${samples} samples per query`
  return [
    ...runLines(results, run, `, ClickHouse ${versions.clickhouse}, PostgreSQL ${versions.postgres}`),
    setLine('Call log', results.clickhouse),
    ...(results.postgres === null ? [] : [setLine('PostgreSQL', results.postgres)]),
    sizes.join('; '),
  ]
}

const pair = (times: { p50Ms: number; p99Ms: number } | null | undefined): string[] =>
  times ? [figure(times.p50Ms), figure(times.p99Ms)] : ['–', '–']

const accountTable = (results: LogResults, account: AccountName): Table => {
  const engines = listEngines(results)
  const of = (engine: EngineName, question: string) => readMeasured(results, engine, account, question)
  const cells = (question: string, times: (row: Measured) => { p50Ms: number; p99Ms: number } | null) => {
    const rows = engines.map((engine) => of(engine, question))
    const some = rows.find((row) => row !== null)
    return [
      ...rows.flatMap((row) => pair(row && times(row))),
      some ? figure(some.rows) : '–',
      figure(of('log', question)?.readRows ?? null),
    ]
  }
  return {
    title: `The ${account} account, milliseconds`,
    columns: ['', ...engines.flatMap((engine) => [`${ENGINE_TITLES[engine]} p50`, 'p99']), 'rows', 'read'],
    rows: results.questions.flatMap(({ name, title, kind }) => [
      ...(kind === 'csv' ? [[`${title}: first rows`, ...cells(name, ({ first }) => first)]] : []),
      [kind === 'csv' ? `${title}: complete` : title, ...cells(name, (row) => row)],
    ]),
  }
}

const slowPages = (results: LogResults): string => {
  const titles = new Map(results.questions.map(({ name, title }) => [name, title]))
  const slow = listSlowPages(results).map(
    ({ question, account, engine, p99Ms }) =>
      `${titles.get(question)} (${account}, ${ENGINE_TITLES[engine]}) ${figure(p99Ms)}`,
  )
  return slow.length === 0
    ? `Every page is within ${PAGE_LIMIT_MS} ms.`
    : `Pages over ${PAGE_LIMIT_MS} ms in the 99th percentile: ${slow.join('; ')}.`
}

const listFailures = ({ failures }: LogResults): string[] =>
  failures.map(
    ({ engine, account, question, error }) => `${question}, ${account} account, ${engine}: ${error}`,
  )

const panel = (results: LogResults, question: string, aim: number | null): Panel => {
  const bars = listEngines(results).flatMap((engine) =>
    ACCOUNT_NAMES.flatMap((account): Bar[] => {
      const row = readMeasured(results, engine, account, question)
      if (row === null) return []
      const label = `${ENGINE_TITLES[engine]}, ${account}`
      return [{ label, value: row.p50Ms, note: `(${figure(row.p99Ms)})`, own: engine !== 'postgres' }]
    }),
  )
  const title = results.questions.find(({ name }) => name === question)?.title ?? question
  return { title, unit: 'ms, p50 (p99)', bars, aim }
}

const PANELS: readonly (readonly [question: string, aim: number | null])[] = [
  [FIRST_PAGE, PAGE_LIMIT_MS],
  [OLD_PAGE, PAGE_LIMIT_MS],
  ['page-100', PAGE_LIMIT_MS],
  ['walk', PAGE_LIMIT_MS],
  ['model-little', PAGE_LIMIT_MS],
  ['key-little', PAGE_LIMIT_MS],
  ['rare', PAGE_LIMIT_MS],
  ['ref', PAGE_LIMIT_MS],
  ['detail', null],
  ['summary-30', null],
  [YEAR, YEAR_LIMIT_MS],
  [CSV, null],
]

const drawChart = (results: LogResults): Chart => {
  const { clickhouse, postgres } = results
  const other = postgres === null ? '' : `, PostgreSQL ${millions(postgres.rows)}`
  return {
    title: `A call log of ${millions(clickhouse.rows)} calls`,
    subtitle: [
      `${chartLine(results)}: ${millions(clickhouse.rows)} rows${other}`,
      'Times of one reader, for the largest account (a tenth of all rows) and a median one. Dashed: the aim. »: longer than drawn.',
    ],
    panels: PANELS.map(([question, aim]) => panel(results, question, aim)).filter(
      ({ bars }) => bars.length > 0,
    ),
  }
}

export const printReport = (results: LogResults): Report => ({
  title: 'What a page of the call log costs',
  chart: drawChart(results),
  chartText: 'Query times of one reader',
  run: printLines(results),
  tables: [
    aimsTable('Aims', listAims(results)),
    ...ACCOUNT_NAMES.map((account) => accountTable(results, account)),
  ],
  remarks: [slowPages(results)],
  failures: listFailures(results),
  method: METHOD,
})
