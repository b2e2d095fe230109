/** Reads a request for the call log: its scope, its filters and its form. See docs/api-rules.md, "Call log list". */

import type { Credential } from '../../schemas/accounts/key.ts'
import type { CallFilter, CallPageQuery } from '../../schemas/call-log/page-query.ts'
import { type LogFormat, type LogQuery, type LogScope, logQuery } from '../../schemas/call-log/query.ts'
import {
  LOG_CSV_MAX_ROWS,
  LOG_LIMIT_DEFAULT_ROWS,
  LOG_LIMIT_MAX_ROWS,
  type LogPeriod,
} from '../../schemas/call-log/row.ts'
import { Failure } from '../../schemas/failure.ts'
import { prefersCsv } from '../../src/core/accepted-format.ts'
import { type LogCursor, parseCursor } from '../../src/core/call-log/cursor.ts'
import { type LogWindow, periodWindow } from '../../src/core/call-log/window.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Stage } from '../calls/pipeline.ts'
import { type Asked, readParams } from '../calls/pipeline.ts'
import { readQuery, refuseParameter, resolveWindow } from '../calls/query.ts'

/** The key that reads the log, and its account. */
export interface LogReader {
  readonly key: Credential['key']
  readonly account: Credential['account']
}

export interface LogSearchDeps {
  /** Signs the cursors; the same on every gateway process. */
  readonly cursorKey: Uint8Array
  readonly now?: () => number
}

/** Where a page begins, in which window and order. */
export interface SearchPlace {
  readonly cursor: LogCursor | null
  readonly window: LogWindow
  readonly order: 'asc' | 'desc'
}

/** One request, understood: what to find, and how to print it. */
export interface LogSearch extends SearchPlace {
  readonly query: LogQuery
  readonly format: LogFormat
  readonly limit: number
}

export const DEFAULT_LOG_PERIOD: LogPeriod = '30d'

export const mayReadAccount = ({ key }: LogReader): boolean => key.kind === 'console' && key.accountLogs

/**
 * Refuses a key that may read no log at all, whatever it requests.
 * @throws Failure
 */
export function assertReadsLogs({ key }: LogReader): void {
  if (key.kind === 'agent') throw new Failure('permission_denied', 'An agent key cannot read call logs.')
}

/**
 * Refuses a scope that the key may not read.
 * @throws Failure
 */
export function assertVisible(reader: LogReader, scope: LogScope): void {
  if (scope === 'account' && !mayReadAccount(reader))
    throw new Failure('permission_denied', 'This API key cannot read the call logs of the whole account.')
}

type CallsOfKeys = Pick<CallFilter, 'accountId' | 'keyIds'>

/** Returns the calls of a scope; null where it has none: another key's calls in this key's scope. */
export function limitToVisible(
  { account, key }: LogReader,
  { scope, key_id }: Pick<LogQuery, 'scope' | 'key_id'>,
): CallsOfKeys | null {
  if (scope === 'account') return { accountId: account.id, keyIds: key_id === undefined ? null : [key_id] }
  return key_id === undefined || key_id === key.id ? { accountId: account.id, keyIds: [key.id] } : null
}

/** Returns whose usage a key sees summed up: an employee's its own, any other its account's. */
export const visibleUsage = ({ account, key }: LogReader): CallsOfKeys => ({
  accountId: account.id,
  keyIds: key.kind === 'employee' ? [key.id] : null,
})

/** The part of a query that decides which page it is of which window. */
type WindowQuery = Pick<LogQuery, 'cursor' | 'order' | 'ref' | 'from' | 'to' | 'period'>

function readCursor(deps: LogSearchDeps, accountId: string, query: WindowQuery): LogCursor | null {
  if (query.cursor === undefined) return null
  const cursor = parseCursor(deps.cursorKey, accountId, query.cursor)
  if (cursor === null) throw refuseParameter('cursor', 'is not a cursor of this log')
  if (query.order !== undefined && query.order !== cursor.order)
    throw refuseParameter('order', `the cursor was made with order=${cursor.order}`)
  return cursor
}

const MAX_ROWS: Readonly<Record<LogFormat, number>> = { json: LOG_LIMIT_MAX_ROWS, csv: LOG_CSV_MAX_ROWS }
const DEFAULT_ROWS: Readonly<Record<LogFormat, number>> = {
  json: LOG_LIMIT_DEFAULT_ROWS,
  csv: LOG_CSV_MAX_ROWS,
}

function readLimit({ limit }: LogQuery, format: LogFormat): number {
  if (limit === undefined) return DEFAULT_ROWS[format]
  if (limit >= 1 && limit <= MAX_ROWS[format]) return limit
  throw refuseParameter('limit', `must be 1 to ${MAX_ROWS[format]}`)
}

export type SearchCall = AuthenticatedCall & Asked<LogSearch>

/**
 * Adds the search that the client asks for.
 * @throws Failure `invalid_request` with a message that names the parameter; `permission_denied`
 */
export const readSearch = (deps: LogSearchDeps): Stage<AuthenticatedCall, SearchCall> =>
  readParams(({ known, request }) => resolveSearch(deps, known, request))

function resolveSearch(deps: LogSearchDeps, reader: LogReader, request: GatewayRequest): LogSearch {
  assertReadsLogs(reader)
  const query = readQuery(logQuery, request.query)
  const format = query.format ?? (prefersCsv(request.header('accept')) ? 'csv' : 'json')
  const limit = readLimit(query, format)
  assertVisible(reader, query.scope)
  return { query, format, limit, ...readPlace(deps, reader.account.id, query) }
}

/**
 * Returns the window of a query, and where its page begins.
 * @throws Failure `invalid_request`
 */
export function readPlace(deps: LogSearchDeps, accountId: string, query: WindowQuery) {
  const cursor = readCursor(deps, accountId, query)
  const now = (deps.now ?? Date.now)()
  const asked = resolveWindow(query, DEFAULT_LOG_PERIOD, now)
  // An exact lookup finds its call however old it is: clients send their usual period with it.
  const window = query.ref === undefined ? asked : periodWindow('all', now)
  return { cursor, window: cursor?.window ?? window, order: cursor?.order ?? query.order ?? 'desc' }
}

/** Returns null for an empty list, which filters nothing, as an empty value does. */
export const omitEmpty = <T>(list: readonly T[] | undefined): readonly T[] | null =>
  list === undefined || list.length === 0 ? null : list

/** Returns the query of a page; null where no row can match. */
export function buildPageQuery(reader: LogReader, search: LogSearch): CallPageQuery | null {
  const { query, cursor, window, order, limit } = search
  const visible = limitToVisible(reader, query)
  return (
    visible && { ...visible, ...readFilters(query), ...window, order, limit, after: cursor?.after ?? null }
  )
}

/** Returns the filters that a query names. */
export const readFilters = (
  query: Pick<LogQuery, 'model' | 'status' | 'unit_type' | 'error_code' | 'ref' | 'session_id'>,
): Pick<CallFilter, 'models' | 'statuses' | 'unitTypes' | 'errorCodes' | 'ref' | 'sessionId'> => ({
  models: omitEmpty(query.model),
  statuses: omitEmpty(query.status),
  unitTypes: omitEmpty(query.unit_type),
  errorCodes: omitEmpty(query.error_code),
  ref: query.ref ?? null,
  sessionId: query.session_id || null,
})
