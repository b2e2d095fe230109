/**
 * `/v1/logs`: the endpoints of the call log, each as the stages of its pipeline. Reading is free, so no wallet is
 * checked. See docs/api-rules.md, "Call log list".
 */
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticateDeps, authenticate } from '../calls/authenticate.ts'
import { pipeline } from '../calls/pipeline.ts'
import { limitLogReads, type RateDeps } from '../calls/rate-limit.ts'
import { answerWithDetail, findCall, type LogDetailDeps, readDetailQuery } from './detail.ts'
import { answerWithCalls, type LogPageDeps } from './page.ts'
import { readSearch } from './search.ts'
import { answerWithSummary, findSummary, type LogSummaryDeps, readSummary } from './summary.ts'

interface ReaderDeps extends AuthenticateDeps, RateDeps {}

export type LogsDeps = ReaderDeps & LogPageDeps & LogDetailDeps & LogSummaryDeps

/** `GET /v1/logs`, as JSON or CSV */
export const listLogs = (deps: ReaderDeps & LogPageDeps): Handler =>
  pipeline(authenticate(deps), limitLogReads(deps), readSearch(deps), answerWithCalls(deps))

/** `GET /v1/logs/{id}` */
export const showLog = (deps: ReaderDeps & LogDetailDeps): Handler =>
  pipeline(authenticate(deps), limitLogReads(deps), readDetailQuery(), findCall(deps), answerWithDetail())

/** `GET /v1/logs/summary` */
export const sumLogs = (deps: ReaderDeps & LogSummaryDeps): Handler =>
  pipeline(authenticate(deps), limitLogReads(deps), readSummary(deps), findSummary(deps), answerWithSummary())
