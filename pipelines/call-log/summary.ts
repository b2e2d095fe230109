/** `GET /v1/logs/summary`: totals of the calls that a key may see. See docs/api-rules.md, "Call log CSV, summary and detail". */
import { type CallStatus, CURRENCY } from '../../schemas/call-log/row.ts'
import {
  LOG_SUMMARY_CACHE_SECONDS,
  LOG_SUMMARY_MAX_DAYS,
  LOG_SUMMARY_PERIODS,
  type LogSummary,
  type LogSummaryQuery,
  logSummaryQuery,
  rowFiltersOfLogSummary,
} from '../../schemas/call-log/summary.ts'
import { printCredits } from '../../schemas/money.ts'
import type { CallSummaries } from '../../src/clickhouse/call-log.ts'
import type { CallSummary } from '../../src/clickhouse/summaries/summarize-calls.ts'
import type { CallSums } from '../../src/clickhouse/summaries/summed-rows.ts'
import { AnswerCache } from '../../src/core/answer-cache.ts'
import { DAY_MS, type LogWindow } from '../../src/core/call-log/window.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { type Asked, answerOnce, type Found, find, readParams } from '../calls/pipeline.ts'
import { printWindow, readQuery, refuseParameter, resolveWindow } from '../calls/query.ts'
import { jsonTextReply } from '../calls/replies.ts'
import {
  assertReadsLogs,
  assertVisible,
  DEFAULT_LOG_PERIOD,
  type LogReader,
  limitToVisible,
} from './search.ts'
import { addAllSums, printSums } from './sums.ts'

export interface LogSummaryDeps {
  readonly callLog: CallSummaries
  readonly now?: () => number
}

/** Of each gateway process. */
const SUMMARY_CACHE_MAX_ENTRIES = 1000
/** An answer has some 70 characters for each day and each model. */
const SUMMARY_CACHE_MAX_CHARS = 16 * 1024 * 1024

const MS_PER_SECOND = 1000

function readSummaryWindow(query: LogSummaryQuery, now: number): LogWindow {
  const { from, to, period } = query
  if (from === undefined && to === undefined && period === 'all')
    throw refuseParameter('period', `a summary takes ${LOG_SUMMARY_PERIODS.join(', ')}, or from and to`)
  const window = resolveWindow(query, DEFAULT_LOG_PERIOD, now)
  if (window.to - window.from > LOG_SUMMARY_MAX_DAYS * DAY_MS)
    throw refuseParameter('from', `a summary is of at most ${LOG_SUMMARY_MAX_DAYS} days`)
  return window
}

/**
 * Returns the cache key of a summary. A window requested by name moves with every millisecond; its answer may be
 * cached all the same.
 */
function cacheKey(
  { account, key }: LogReader,
  query: LogSummaryQuery,
  window: LogWindow,
  now: number,
): string {
  const { scope, key_id = null, from, period = DEFAULT_LOG_PERIOD } = query
  const today = Math.floor(now / DAY_MS)
  const asked = from === undefined ? [period, today] : [window.from, window.to]
  return JSON.stringify([account.id, scope, scope === 'key' ? key.id : null, key_id, ...asked])
}

const EMPTY: CallSummary = { byStatus: [], byDay: [], byModel: [] }

function printStatusCounts({ byStatus }: CallSummary): LogSummary['status_counts'] {
  const counts = new Map(byStatus.map(({ status, requests }) => [status, requests]))
  const count = (status: CallStatus): number => counts.get(status) ?? 0
  return {
    success: count('success'),
    error: count('error'),
    interrupted: count('interrupted'),
    rejected: count('rejected'),
  }
}

const addTokens = ({ inputTokens, outputTokens }: CallSums): number => inputTokens + outputTokens

/** Compares names by their code units, whatever the machine's language. */
const compare = <T extends string | bigint>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)

function printDays({ byDay }: CallSummary): LogSummary['by_day'] {
  return byDay
    .toSorted((a, b) => compare(a.day, b.day))
    .map((sums) => ({
      date: sums.day,
      requests: sums.requests,
      cost: printCredits(sums.cost),
      tokens: addTokens(sums),
    }))
}

function printModels({ byModel }: CallSummary): LogSummary['by_model'] {
  return byModel
    .toSorted((a, b) => compare(b.cost, a.cost) || compare(a.model, b.model))
    .map((sums) => ({
      model: sums.model,
      requests: sums.requests,
      cost: printCredits(sums.cost),
      total_tokens: addTokens(sums),
    }))
}

const printSummary = ({ scope }: LogSummaryQuery, window: LogWindow, summary: CallSummary): LogSummary => ({
  object: 'logs.summary',
  currency: CURRENCY,
  scope,
  ...printWindow(window),
  // Every call has exactly one status.
  total: printSums(addAllSums(summary.byStatus)),
  status_counts: printStatusCounts(summary),
  by_day: printDays(summary),
  by_model: printModels(summary),
})

interface SummaryWindow {
  readonly query: LogSummaryQuery
  readonly window: LogWindow
  /** Epoch milliseconds of the request. */
  readonly at: number
}

type SummaryCall = AuthenticatedCall & Asked<SummaryWindow>

/** Adds what is to be summed up. @throws Failure `invalid_request`, `permission_denied` */
export const readSummary = ({ now = Date.now }: LogSummaryDeps): Stage<AuthenticatedCall, SummaryCall> =>
  readParams(({ known, request }) => {
    assertReadsLogs(known)
    readQuery(rowFiltersOfLogSummary, request.query)
    const query = readQuery(logSummaryQuery, request.query)
    assertVisible(known, query.scope)
    const at = now()
    return { query, window: readSummaryWindow(query, at), at }
  })

/** Adds the summary, as JSON text; one that was made a moment ago is used again. */
export function findSummary({
  callLog,
  now = Date.now,
}: LogSummaryDeps): Stage<SummaryCall, Call & Found<string>> {
  const cache = new AnswerCache({
    maxAgeMs: LOG_SUMMARY_CACHE_SECONDS * MS_PER_SECOND,
    maxEntries: SUMMARY_CACHE_MAX_ENTRIES,
    maxChars: SUMMARY_CACHE_MAX_CHARS,
    now,
  })
  return find(({ known, params: { query, window, at } }, signal) => {
    const make = async (given: AbortSignal): Promise<string> => {
      const calls = limitToVisible(known, query)
      const summary = calls === null ? EMPTY : await callLog.summarizeCalls({ ...calls, ...window }, given)
      return JSON.stringify(printSummary(query, window, summary))
    }
    return cache.get(cacheKey(known, query, window, at), make, signal)
  })
}

/** Answers with the summary. */
export const answerWithSummary = (): Stage<Call & Found<string>, never> =>
  answerOnce(({ found }) => jsonTextReply(found))
