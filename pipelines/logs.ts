/** `GET /v1/logs`: a page of the calls that a key may see. Source: specification, "GET /v1/logs"; decisions, "Call logs". */
import { map, type Observable } from 'rxjs'
import { Failure } from '../schemas/failure.ts'
import type { Credential } from '../schemas/key.ts'
import { CURRENCY, type LogPeriod, type LogRow } from '../schemas/log.ts'
import { type LogPage, type LogQuery, logQuery } from '../schemas/log-query.ts'
import type { CallLog } from '../src/clickhouse/call-log.ts'
import type { CallPage, CallPageQuery } from '../src/clickhouse/find-calls.ts'
import { type LogCursor, parseCursor, printCursor } from '../src/core/log-cursor.ts'
import type { LogWindow } from '../src/core/log-window.ts'
import type { Exchange, Reply } from '../src/http/exchange.ts'
import { readQuery, refusedParameter, windowOf } from './query.ts'
import { fromAbortable } from './stages/from-abortable.ts'
import { jsonReply } from './stages/json-reply.ts'

export interface LogsDeps {
  readonly callLog: Pick<CallLog, 'findCalls'>
  /** Signs the cursors; the same on every gateway process. */
  readonly cursorKey: Uint8Array
  readonly now?: () => number
}

/** Whose calls are asked for, and what of them. */
type Reader = Pick<Credential, 'key' | 'account'>

const DEFAULT_PERIOD: LogPeriod = '30d'

/** Throws unless the key may read what it asks for. Specification, "Visibility by key type". */
function assertVisible({ key }: Reader, { scope }: LogQuery): void {
  if (key.kind === 'agent') throw new Failure('permission_denied', 'An agent key cannot read call logs.')
  if (scope === 'key') return
  if (key.kind !== 'console' || !key.accountLogs)
    throw new Failure('permission_denied', 'This API key cannot read the call logs of the whole account.')
}

function cursorOf(deps: LogsDeps, reader: Reader, query: LogQuery): LogCursor | null {
  if (query.cursor === undefined) return null
  const cursor = parseCursor(deps.cursorKey, reader.account.id, query.cursor)
  if (cursor === null) throw refusedParameter('cursor', 'is not a cursor of this log')
  if (query.order !== undefined && query.order !== cursor.order)
    throw refusedParameter('order', `the cursor was made with order=${cursor.order}`)
  return cursor
}

/** One request, understood: what to look for, and how to print it. */
interface Search {
  readonly query: LogQuery
  readonly cursor: LogCursor | null
  readonly window: LogWindow
  readonly order: 'asc' | 'desc'
}

function readSearch(deps: LogsDeps, reader: Reader, exchange: Exchange): Search {
  const query = readQuery(logQuery, exchange.query)
  assertVisible(reader, query)
  const cursor = cursorOf(deps, reader, query)
  return {
    query,
    cursor,
    // An exact lookup finds its call however old it is, unless a window is asked for.
    window:
      cursor?.window ??
      windowOf(query, query.ref === undefined ? DEFAULT_PERIOD : 'all', (deps.now ?? Date.now)()),
    order: cursor?.order ?? query.order ?? 'desc',
  }
}

/** An empty list narrows nothing, as an empty value does. */
const narrowing = <T>(list: readonly T[] | undefined): readonly T[] | null =>
  list === undefined || list.length === 0 ? null : list

/** Null where nothing can be found: another key's calls in this key's scope. */
function pageQuery({ account, key }: Reader, { query, cursor, window, order }: Search): CallPageQuery | null {
  if (query.scope === 'key' && query.key_id !== undefined && query.key_id !== key.id) return null
  return {
    accountId: account.id,
    keyId: query.scope === 'key' ? key.id : (query.key_id ?? null),
    models: narrowing(query.model),
    statuses: narrowing(query.status),
    unitTypes: narrowing(query.unit_type),
    errorCodes: narrowing(query.error_code),
    ref: query.ref ?? null,
    ...window,
    order,
    limit: query.limit,
    after: cursor?.after ?? null,
  }
}

const withoutAttempts = ({ attempts: _, ...row }: LogRow): LogRow => row

function nextCursor(
  deps: LogsDeps,
  reader: Reader,
  { order, window }: Search,
  page: CallPage,
): string | null {
  const last = page.rows.at(-1)
  if (!page.hasMore || last === undefined) return null
  const after = { createdAt: Date.parse(last.created_at), id: last.id }
  return printCursor(deps.cursorKey, reader.account.id, { order, window, after })
}

function printPage(deps: LogsDeps, reader: Reader, search: Search, page: CallPage): LogPage {
  const { query, cursor, window } = search
  const includes = query.include.length === 0 ? ['attempts'] : query.include
  return {
    object: 'list',
    currency: CURRENCY,
    scope: query.scope,
    period_from: new Date(window.from).toISOString(),
    period_to: new Date(window.to).toISOString(),
    data: includes.includes('attempts') ? page.rows : page.rows.map(withoutAttempts),
    has_more: page.hasMore,
    next_cursor: nextCursor(deps, reader, search, page),
    // No endpoint is asynchronous: what was asked for on the first page is empty.
    ...(cursor === null && includes.includes('in_flight') && { in_flight: [] }),
  }
}

const NOTHING: CallPage = { rows: [], hasMore: false }

/** The caller has authenticated the reader; reading is free, so no wallet is asked. */
export const logs =
  (deps: LogsDeps) =>
  (reader: Reader, exchange: Exchange): Observable<Reply> =>
    fromAbortable(async (signal) => {
      const search = readSearch(deps, reader, exchange)
      const query = pageQuery(reader, search)
      const page = query === null ? NOTHING : await deps.callLog.findCalls(query, signal)
      return printPage(deps, reader, search, page)
    }).pipe(map(jsonReply))
