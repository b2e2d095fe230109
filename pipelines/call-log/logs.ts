/**
 * `/v1/logs`: the endpoints of the call log, each as the stages of its pipeline. Reading is free, so no wallet is
 * checked. See docs/api-rules.md, "Call log list".
 */
import type { Handler } from '../../src/http/handler.ts'
import { authenticate, type CallAccess } from '../calls/authenticate.ts'
import { calls } from '../calls/pipeline.ts'
import { limitLogReads } from '../calls/rate-limit.ts'
import { answerWithDetail, findCall, type LogDetailDeps, readDetailQuery } from './detail.ts'
import { answerWithCalls, type LogPageDeps } from './page.ts'
import { readSearch } from './search.ts'
import { answerWithSummary, findSummary, type LogSummaryDeps, readSummary } from './summary.ts'

/** `GET /v1/logs`, as JSON or CSV */
export const listLogs = (access: CallAccess, deps: LogPageDeps): Handler =>
  calls(authenticate(access))
    .then(limitLogReads(access))
    .then(readSearch(deps))
    .then(answerWithCalls(deps))
    .toHandler()

/** `GET /v1/logs/{id}` */
export const showLog = (access: CallAccess, deps: LogDetailDeps): Handler =>
  calls(authenticate(access))
    .then(limitLogReads(access))
    .then(readDetailQuery())
    .then(findCall(deps))
    .then(answerWithDetail())
    .toHandler()

/** `GET /v1/logs/summary` */
export const sumLogs = (access: CallAccess, deps: LogSummaryDeps): Handler =>
  calls(authenticate(access))
    .then(limitLogReads(access))
    .then(readSummary(deps))
    .then(findSummary(deps))
    .then(answerWithSummary())
    .toHandler()
