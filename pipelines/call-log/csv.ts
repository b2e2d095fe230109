/**
 * `GET /v1/logs` as CSV: the same calls in the same order, many more of them in one answer.
 * See docs/api-rules.md, "Call log CSV, summary and detail".
 */
import type { Observable } from 'rxjs'
import type { CallPageQuery, CallPosition } from '../../schemas/call-log/page-query.ts'
import type { CallPages } from '../../src/clickhouse/call-log.ts'
import type { CallPositions } from '../../src/clickhouse/pages/list-positions.ts'
import { LOG_CSV_HEADER, printLogCsvRecord } from '../../src/core/call-log/csv.ts'
import { printCursor } from '../../src/core/call-log/cursor.ts'
import type { HeaderList, Reply } from '../../src/http/handler.ts'
import { paceReply } from '../calls/replies.ts'
import { buildPageQuery, type LogReader, type LogSearch, type LogSearchDeps } from './search.ts'

export interface LogCsvDeps extends LogSearchDeps {
  readonly callLog: CallPages
}

/** The most rows in memory at a time. */
const ROWS_PER_READ = 500
/** Rows leave together as soon as they are this long: a write each would cost more than they do. */
const PIECE_CHARS = 32 * 1024

function makeHeaders(
  deps: LogCsvDeps,
  reader: LogReader,
  { order, window }: LogSearch,
  { positions, hasMore }: CallPositions,
): HeaderList {
  const after = positions.at(-1)
  return [
    ['content-type', 'text/csv; charset=utf-8'],
    ['content-disposition', 'attachment; filename="logs.csv"'],
    ...(hasMore && after !== undefined
      ? ([
          ['x-truncated', 'true'],
          ['x-next-cursor', printCursor(deps.cursorKey, reader.account.id, { order, window, after })],
        ] as const)
      : []),
  ]
}

async function* printPieces(
  { callLog }: LogCsvDeps,
  accountId: string,
  positions: readonly CallPosition[],
  signal: AbortSignal,
): AsyncGenerator<string> {
  let piece = LOG_CSV_HEADER
  for (let at = 0; at < positions.length; at += ROWS_PER_READ) {
    const some = positions.slice(at, at + ROWS_PER_READ)
    for (const row of await callLog.findCallsAt({ accountId, positions: some }, signal)) {
      piece += printLogCsvRecord(row)
      if (piece.length < PIECE_CHARS) continue
      yield piece
      piece = ''
    }
  }
  if (piece !== '') yield piece
}

const NOTHING: CallPositions = { positions: [], hasMore: false }

/**
 * Streams the rows as CSV. Counts the rows before the first of them leaves, so that the head can announce a cut; reads
 * them as the client takes them.
 */
export const logCsv = (deps: LogCsvDeps, reader: LogReader, search: LogSearch): Observable<Reply> =>
  paceReply(async (signal) => {
    const query: CallPageQuery | null = buildPageQuery(reader, search)
    const list = query === null ? NOTHING : await deps.callLog.listPositions(query, signal)
    return {
      headers: makeHeaders(deps, reader, search, list),
      pieces: printPieces(deps, reader.account.id, list.positions, signal),
    }
  })
