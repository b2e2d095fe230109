/** `GET /v1/logs/{id}`: one call in detail. See docs/api-rules.md, "Call detail". */
import { map, type Observable } from 'rxjs'
import { type LogDetail, logDetailQuery } from '../../schemas/call-log/detail.ts'
import type { LogScope } from '../../schemas/call-log/query.ts'
import { Failure } from '../../schemas/failure.ts'
import type { CallLog } from '../../src/clickhouse/call-log.ts'
import { detailView } from '../../src/core/call-log/detail.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'
import { readQuery } from '../query.ts'
import { fromAbortable } from '../replies/from-abortable.ts'
import { jsonReply } from '../replies/json.ts'
import { assertReadsLogs, assertVisible, type LogReader, mayReadAccount } from './search.ts'

export interface LogDetailDeps {
  readonly callLog: Pick<CallLog, 'findCall'>
}

/** An id is written in one way only. */
const ID = /^[1-9]\d{0,15}$/

/** Returns the row id, or null for a text that no row has as its id. */
function idOf(path: string): number | null {
  const text = path.slice(path.lastIndexOf('/') + 1)
  const id = Number(text)
  return ID.test(text) && Number.isSafeInteger(id) ? id : null
}

/**
 * Returns the same failure for a missing call and for one that the key may not see, so that clients cannot distinguish
 * them.
 */
const notFound = (): Failure => new Failure('log_not_found', 'There is no such call in the log of this key.')

async function find(
  { callLog }: LogDetailDeps,
  { account, key }: LogReader,
  { scope, id }: { scope: LogScope; id: number | null },
  signal: AbortSignal,
): Promise<LogDetail> {
  if (id === null) throw notFound()
  const keyId = scope === 'account' ? null : key.id
  const call = await callLog.findCall({ accountId: account.id, keyId, id }, signal)
  if (call === null) throw notFound()
  return detailView(call)
}

/** Answers the request. The reader is authenticated; reading is free, so no wallet is checked. */
export const logDetail =
  (deps: LogDetailDeps) =>
  (reader: LogReader, { path, query }: GatewayRequest): Observable<Reply> =>
    fromAbortable(async (signal) => {
      assertReadsLogs(reader)
      const { scope = mayReadAccount(reader) ? 'account' : 'key' } = readQuery(logDetailQuery, query)
      assertVisible(reader, scope)
      return find(deps, reader, { scope, id: idOf(path) }, signal)
    }).pipe(map(jsonReply))
