/** The queries of the bench, each time for other rows. */

import type { Random } from '../../harness/random.ts'
import type { Census, EngineName, KnownRow, LogEngine, PageQuery } from '../engines/engine.ts'
import { type Account, END_MS, keyId, RARE, START_MS } from '../rows/population.ts'
import { walkPages } from './walk.ts'

/** A sample is the time until the response is complete; of a CSV also the time until it begins. */
interface Answer {
  readonly rows: number
  readonly firstMs?: number
}

export type Ask = () => Promise<Answer>

/** An account as one engine has it. */
export interface Subject {
  readonly engine: LogEngine
  readonly census: Census
  readonly account: Account
  readonly random: Random
  /** The rows of the account in the engine. */
  readonly rows: number
  readonly known: readonly KnownRow[]
}

export type QuestionKind = 'nothing' | 'page' | 'detail' | 'summary' | 'csv'

export interface Question {
  readonly name: string
  readonly title: string
  readonly kind: QuestionKind
  readonly engines: readonly EngineName[]
  /** Returns the next query to run. Not measured. */
  begin(about: Subject): () => Promise<Ask>
}

const EVERYBODY: readonly EngineName[] = ['log', 'http', 'postgres']
const WITHOUT_HTTP: readonly EngineName[] = ['log', 'postgres']
/** Only the routes produce CSV, not the service's functions. */
const WITH_CSV: readonly EngineName[] = ['http', 'postgres']

const DAY_MS = 24 * 60 * 60 * 1000
const PERIOD_MS = 30 * DAY_MS
const PAGE_ROWS = 50
const MOST_ROWS = 200
const CSV_ROWS = 10_000
const FAR_PAGE = 100
const SPAN_MS = END_MS - START_MS
/** Queries of all time end in the last tenth of it, so that they may have to read much. */
const LATE_MS = END_MS - SPAN_MS / 10
/** The instant at which the account had one row in a hundred. */
const YOUNG_MS = START_MS + SPAN_MS / 100
/** A share of an account's rows that is certainly older than `LATE_MS`. */
const SURELY_OLDER = 0.85

/** The first page of an account in a window, without any filter. */
export const plainPage = (account: Pick<Account, 'id'>, from: number, to: number): PageQuery => ({
  accountId: account.id,
  keyIds: null,
  models: null,
  statuses: null,
  unitTypes: null,
  errorCodes: null,
  ref: null,
  sessionId: null,
  from,
  to,
  order: 'desc',
  limit: PAGE_ROWS,
  cursor: null,
})

interface Named extends Pick<Question, 'name' | 'title'> {
  readonly engines?: readonly EngineName[]
}

const page = (
  { name, title, engines = WITHOUT_HTTP }: Named,
  makeQuery: (subject: Subject) => PageQuery | Promise<PageQuery>,
): Question => ({
  name,
  title,
  kind: 'page',
  engines,
  begin: (subject) => async () => {
    const query = await makeQuery(subject)
    return async () => ({ rows: (await subject.engine.page(query)).ids.length })
  },
})

/** All time up to an instant after `LATE_MS`. */
const longHistory = ({ account, random }: Subject): PageQuery =>
  plainPage(account, START_MS, random.between(LATE_MS, END_MS))

/** A first page of all time, with filters. */
const filtered = (name: string, title: string, narrow: (subject: Subject) => Partial<PageQuery>): Question =>
  page({ name, title }, (subject) => ({ ...longHistory(subject), ...narrow(subject) }))

const farPage = page({ name: 'page-100', title: 'Page 100, all time' }, async (subject) => {
  const query = longHistory(subject)
  const { census, account, rows } = subject
  // An account with fewer pages gives its last one.
  const last = Math.floor((rows * SURELY_OLDER) / PAGE_ROWS) - 1
  const pages = Math.min(FAR_PAGE - 1, last)
  if (pages < 1) return query
  return { ...query, cursor: await census.cursorBehind(account.id, query.to, pages * PAGE_ROWS) }
})

/** Each query has the cursor of the previous page; after the last page a new walk begins. */
const walk: Question = {
  name: 'walk',
  title: 'Pages 1 to 100 by their cursors',
  kind: 'page',
  engines: EVERYBODY,
  begin: (subject) => {
    let pages: AsyncGenerator<number> | null = null
    return async () => async () => {
      pages ??= walkPages(subject.engine, longHistory(subject), FAR_PAGE)
      const { value, done } = await pages.next()
      if (!done) return { rows: value }
      pages = walkPages(subject.engine, longHistory(subject), FAR_PAGE)
      return { rows: (await pages.next()).value ?? 0 }
    }
  },
}

/** The fixed cost of each query. */
const nothing: Question = {
  name: 'nothing',
  title: 'Nothing (SELECT 1, /healthz)',
  kind: 'nothing',
  engines: EVERYBODY,
  begin:
    ({ engine }) =>
    async () =>
    async () => {
      await engine.nothing()
      return { rows: 0 }
    },
}

const detail: Question = {
  name: 'detail',
  title: 'Detail of one call',
  kind: 'detail',
  engines: EVERYBODY,
  begin:
    ({ engine, account, random, known }) =>
    async () => {
      const query = { accountId: account.id, keyId: null, id: random.pick(known).id }
      return async () => ({ rows: await engine.detail(query) })
    },
}

const summary = (days: number): Question => ({
  name: `summary-${days}`,
  title: `Summary of ${days} days`,
  kind: 'summary',
  engines: EVERYBODY,
  begin:
    ({ engine, account, random }) =>
    async () => {
      const to = random.between(START_MS + days * DAY_MS, END_MS)
      const query = { accountId: account.id, keyIds: null, from: to - days * DAY_MS, to }
      return async () => ({ rows: await engine.summary(query) })
    },
})

const csv: Question = {
  name: 'csv',
  title: `CSV of ${CSV_ROWS.toLocaleString('en-US')} rows`,
  kind: 'csv',
  engines: WITH_CSV,
  begin: (subject) => async () => {
    const query = { ...longHistory(subject), limit: CSV_ROWS }
    return () => subject.engine.csv!(query)
  },
}

export const FIRST_PAGE = 'first-page'
export const YOUNG_PAGE = 'first-page-young'
export const OLD_PAGE = 'first-page-all'
export const YEAR = 'summary-365'
export const CSV = csv.name

/** Filters that match most rows, very few, or none. */
const FILTERS: readonly Question[] = [
  filtered('model-much', 'model: a quarter of all', () => ({ models: ['sonata-small'] })),
  filtered('model-little', 'model: one in 500', () => ({ models: ['coda-legacy'] })),
  filtered('model-none', 'model: never called', () => ({ models: ['no-such-model'] })),
  filtered('status-much', 'status: success', () => ({ statuses: ['success'] })),
  filtered('status-little', 'status: rejected, one in 80', () => ({ statuses: ['rejected'] })),
  filtered('key-much', 'key_id: the busiest', ({ account }) => ({ keyIds: [keyId(account, 0)] })),
  filtered('key-little', 'key_id: the calmest', ({ account }) => ({
    keyIds: [keyId(account, account.keys - 1)],
  })),
  filtered('unit-much', 'unit_type: chat', () => ({ unitTypes: ['chat'] })),
  filtered('unit-little', 'unit_type: music, one in 500', () => ({ unitTypes: ['music'] })),
  filtered('error-much', 'error_code: one call in 50', () => ({ errorCodes: ['upstream_error'] })),
  filtered('error-little', 'error_code: one in 30,000', () => ({ errorCodes: ['service_unavailable'] })),
  filtered('rare', 'three filters: one in 200,000', () => ({
    models: [RARE.model],
    statuses: [RARE.status],
    errorCodes: [RARE.errorCode],
  })),
]

export const QUESTIONS: readonly Question[] = [
  nothing,
  page({ name: FIRST_PAGE, title: 'First page, 30 days', engines: EVERYBODY }, ({ account, random }) => {
    const to = random.between(START_MS + PERIOD_MS, END_MS)
    return plainPage(account, to - PERIOD_MS, to)
  }),
  page({ name: OLD_PAGE, title: 'First page, all time', engines: EVERYBODY }, longHistory),
  page({ name: YOUNG_PAGE, title: 'First page at 1 % of the history' }, ({ account, random }) =>
    plainPage(account, START_MS, random.between(YOUNG_MS, YOUNG_MS + DAY_MS)),
  ),
  farPage,
  walk,
  page({ name: 'sync', title: 'Rising order, 200 rows' }, ({ account, random }) => {
    const from = random.between(START_MS, END_MS - PERIOD_MS)
    return { ...plainPage(account, from, END_MS), order: 'asc', limit: MOST_ROWS }
  }),
  ...FILTERS,
  page({ name: 'ref', title: 'ref: one request id', engines: EVERYBODY }, ({ account, random, known }) => ({
    ...plainPage(account, START_MS, END_MS),
    ref: random.pick(known).requestId,
  })),
  filtered('ref-none', 'ref: of no call', ({ random }) => ({
    ref: `req_01J8${String(random.between(0, 2 ** 31)).padStart(22, '0')}`,
  })),
  detail,
  summary(30),
  summary(365),
  csv,
]
