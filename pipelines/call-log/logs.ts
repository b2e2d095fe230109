/**
 * `/v1/logs`: the endpoints of the call log, each as the stages of its pipeline. Reading is free, so no wallet is
 * checked. See docs/api-rules.md, "Call log list".
 */
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticateDeps, authenticate } from '../calls/authenticate.ts'
import { calls } from '../calls/pipeline.ts'
import { limitLogReads, type RateDeps } from '../calls/rate-limit.ts'
import { answerWithDetail, findCall, type LogDetailDeps, readDetailQuery } from './detail.ts'
import { answerWithCalls, type LogPageDeps } from './page.ts'
import { readSearch } from './search.ts'
import { answerWithSummary, findSummary, type LogSummaryDeps, readSummary } from './summary.ts'

interface ReaderDeps extends AuthenticateDeps, RateDeps {}

export type LogsDeps = ReaderDeps & LogPageDeps & LogDetailDeps & LogSummaryDeps

/** `GET /v1/logs`, as JSON or CSV */
export const listLogs = (deps: ReaderDeps & LogPageDeps): Handler =>
  calls(authenticate(deps))
    .then(limitLogReads(deps))
    .then(readSearch(deps))
    .then(answerWithCalls(deps))
    .toHandler()

/** `GET /v1/logs/{id}` */
export const showLog = (deps: ReaderDeps & LogDetailDeps): Handler =>
  calls(authenticate(deps))
    .then(limitLogReads(deps))
    .then(readDetailQuery())
    .then(findCall(deps))
    .then(answerWithDetail())
    .toHandler()

/** `GET /v1/logs/summary` */
export const sumLogs = (deps: ReaderDeps & LogSummaryDeps): Handler =>
  calls(authenticate(deps))
    .then(limitLogReads(deps))
    .then(readSummary(deps))
    .then(findSummary(deps))
    .then(answerWithSummary())
    .toHandler()
