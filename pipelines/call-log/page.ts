/** `GET /v1/logs`: a page of the calls that a key may see. See docs/api-rules.md, "Call log list". */

import { map, type Observable } from 'rxjs'
import type { LogRow } from '../../schemas/call-log/columns.ts'
import type { JobInFlight, LogPage } from '../../schemas/call-log/query.ts'
import { CURRENCY } from '../../schemas/call-log/row.ts'
import type { CallPage } from '../../src/clickhouse/pages/find-calls.ts'
import { printCursor } from '../../src/core/call-log/cursor.ts'
import type { Reply } from '../../src/http/handler.ts'
import type { Tasks } from '../../src/postgres/tasks/repository.ts'
import type { Stage } from '../calls/pipeline.ts'
import { answer, fromAbortable } from '../calls/pipeline.ts'
import { printWindow } from '../calls/query.ts'
import { jsonReply } from '../calls/replies.ts'
import { type LogCsvDeps, logCsv } from './csv.ts'
import { listJobsInFlight } from './in-flight.ts'
import {
  buildPageQuery,
  type LogReader,
  type LogSearch,
  type LogSearchDeps,
  type SearchCall,
  type SearchPlace,
} from './search.ts'

export interface LogPageDeps extends LogCsvDeps {
  readonly tasks: Tasks
}

const chooseIncludes = ({ query }: LogSearch): readonly string[] =>
  query.include.length === 0 ? ['attempts'] : query.include

const withoutAttempts = ({ attempts: _, ...row }: LogRow): LogRow => row

/** Adds the attempts to a row. An only attempt that did not fail is not stored: its row describes it. */
export function withAttempts(row: LogRow): LogRow {
  if (row.attempts_count !== 1 || (row.attempts ?? []).length > 0) return row
  const { submitted_at: created_at, latency_ms, error_code, error_message } = row
  return { ...row, attempts: [{ seq: 1, created_at, latency_ms, error_code, error_message }] }
}

/** Returns the cursor of the page after this one; null at the end. */
export function makeNextCursor(
  deps: LogSearchDeps,
  accountId: string,
  { order, window }: SearchPlace,
  page: CallPage,
): string | null {
  const last = page.rows.at(-1)
  if (!page.hasMore || last === undefined) return null
  const after = { createdAt: Date.parse(last.created_at), id: last.id }
  return printCursor(deps.cursorKey, accountId, { order, window, after })
}

/** A page, and the jobs that have no rows yet; null where they are not part of it. */
interface FoundPage {
  readonly page: CallPage
  readonly inFlight: JobInFlight[] | null
}

function printPage(
  deps: LogPageDeps,
  reader: LogReader,
  search: LogSearch,
  { page, inFlight }: FoundPage,
): LogPage {
  const { query, window } = search
  return {
    object: 'list',
    currency: CURRENCY,
    scope: query.scope,
    ...printWindow(window),
    data: page.rows.map(chooseIncludes(search).includes('attempts') ? withAttempts : withoutAttempts),
    has_more: page.hasMore,
    next_cursor: makeNextCursor(deps, reader.account.id, search, page),
    ...(inFlight !== null && { in_flight: inFlight }),
  }
}

const NOTHING: CallPage = { rows: [], hasMore: false }

async function findPage(
  deps: LogPageDeps,
  reader: LogReader,
  search: LogSearch,
  signal: AbortSignal,
): Promise<FoundPage> {
  const query = buildPageQuery(reader, search)
  const isAskedFor = search.cursor === null && chooseIncludes(search).includes('in_flight')
  if (query === null) return { page: NOTHING, inFlight: isAskedFor ? [] : null }
  const [page, inFlight] = await Promise.all([
    deps.callLog.findCalls(query, signal),
    isAskedFor ? listJobsInFlight(deps.tasks, query) : null,
  ])
  return { page, inFlight }
}

const answerPage = (deps: LogPageDeps, reader: LogReader, search: LogSearch): Observable<Reply> =>
  fromAbortable(async (signal) =>
    printPage(deps, reader, search, await findPage(deps, reader, search, signal)),
  ).pipe(map(jsonReply))

/** Answers with a page as JSON, or with the CSV. */
export const answerWithCalls = (deps: LogPageDeps): Stage<SearchCall, never> =>
  answer(({ known, params }) =>
    params.format === 'csv' ? logCsv(deps, known, params) : answerPage(deps, known, params),
  )
