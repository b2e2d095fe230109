/** `GET /v1/logs/{id}`: one call in detail. See docs/api-rules.md, "Call log CSV, summary and detail". */
import {
  type CallWithDetail,
  type LogDetailAnswer,
  logDetailQuery,
  type ShownRefund,
} from '../../schemas/call-log/detail.ts'
import type { LogScope } from '../../schemas/call-log/query.ts'
import { Failure } from '../../schemas/failure.ts'
import type { CallPages } from '../../src/clickhouse/call-log.ts'
import { printDetail } from '../../src/core/call-log/detail.ts'
import type { Wallets } from '../../src/postgres/billing/repository.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { type Asked, answerJson, type Found, find, readParams } from '../calls/pipeline.ts'
import { readQuery } from '../calls/query.ts'
import { readRefund } from './refund.ts'
import { assertReadsLogs, assertVisible, mayReadAccount } from './search.ts'

export interface LogDetailDeps {
  readonly callLog: CallPages
  readonly wallets: Wallets
}

/** An id is written in one way only. */
const ID = /^[1-9]\d{0,15}$/

/** Returns the row id, or null for a text that no row has as its id. */
function readId(text: string): number | null {
  const id = Number(text)
  return ID.test(text) && Number.isSafeInteger(id) ? id : null
}

/**
 * Returns the same failure for a missing call and for one that the key may not see, so that clients cannot distinguish
 * them.
 */
const notFound = (): Failure => new Failure('log_not_found', 'There is no such call in the log of this key.')

interface DetailQuery {
  readonly scope: LogScope
  /** Null: no row of the log has what the path names. */
  readonly id: number | null
}

type DetailCall = AuthenticatedCall & Asked<DetailQuery>

/** Adds which call the client asks for. @throws Failure `invalid_request`, `permission_denied` */
export const readDetailQuery = (): Stage<AuthenticatedCall, DetailCall> =>
  readParams(({ known, request: { params, query } }) => {
    assertReadsLogs(known)
    const { scope = mayReadAccount(known) ? 'account' : 'key' } = readQuery(logDetailQuery, query)
    assertVisible(known, scope)
    return { scope, id: readId(params.id) }
  })

interface CallInFull {
  readonly call: CallWithDetail
  readonly refund: ShownRefund | null
}

/** Adds the row of the call, and what was given back of its charge. @throws Failure `log_not_found` */
export const findCall = (deps: LogDetailDeps): Stage<DetailCall, Call & Found<CallInFull>> =>
  find(async ({ known: { account, key }, params: { scope, id } }, signal) => {
    if (id === null) throw notFound()
    const keyId = scope === 'account' ? null : key.id
    const call = await deps.callLog.findCall({ accountId: account.id, keyId, id }, signal)
    if (call === null) throw notFound()
    // Nothing is given back of nothing.
    const refund =
      call.cost === '0' ? null : await readRefund(deps.wallets, account.id, call.task_id ?? call.request_id)
    return { call, refund }
  })

/** Answers with the call, how it was charged, and what was given back. */
export const answerWithDetail = (): Stage<Call & Found<CallInFull>, never> =>
  answerJson(({ found: { call, refund } }): LogDetailAnswer => ({ ...printDetail(call), refund }))
