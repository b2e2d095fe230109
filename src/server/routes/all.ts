/** Which pipeline answers which endpoint. */
import type { Observable } from 'rxjs'
import { balance } from '../../../pipelines/accounts/balance.ts'
import {
  type BillingUsageDeps,
  billingSubscription,
  billingUsage,
  creditGrants,
} from '../../../pipelines/accounts/billing.ts'
import { publicModels } from '../../../pipelines/accounts/models.ts'
import { type UsageDeps, usage } from '../../../pipelines/accounts/usage.ts'
import { type LogDetailDeps, logDetail } from '../../../pipelines/call-log/detail.ts'
import { type LogsDeps, logs } from '../../../pipelines/call-log/page.ts'
import { type LogSummaryDeps, logSummary } from '../../../pipelines/call-log/summary.ts'
import { type ChatDeps, chat } from '../../../pipelines/chat/chat.ts'
import { countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { type EmbeddingsDeps, embeddings } from '../../../pipelines/chat/embeddings.ts'
import { type FilesDeps, files } from '../../../pipelines/media/files/files.ts'
import { referenceDocument, referencePage, referenceScript, toReference } from '../../../pipelines/openapi.ts'
import { health, metrics, type OperatorViewDeps, readiness } from '../../../pipelines/operator-view.ts'
import { answer } from '../../../pipelines/stages/answer.ts'
import { authenticate, type Caller } from '../../../pipelines/stages/authenticate.ts'
import { pipeline } from '../../../pipelines/stages/pipeline.ts'
import { limitLogReads, type RateDeps, rateLimit } from '../../../pipelines/stages/rate-limit.ts'
import { FILES_PATH } from '../../core/media/file-link.ts'
import type { Handler, Reply } from '../../http/handler.ts'
import type { Route, RouteTable } from '../../http/route.ts'
import { REFERENCE_SCRIPT_PATH } from '../../openapi/page.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import { type AudioRouteDeps, audioRoutes } from './audio.ts'
import { type ImageRouteDeps, imageRoutes } from './images.ts'
import { type ModelRouteDeps, modelRoutes } from './models.ts'
import { makeReference } from './reference.ts'
import { type Answered, pathRouter } from './routed.ts'
import { type VideoRouteDeps, videoRoutes } from './videos.ts'
import { type WikiRouteDeps, wikiRoutes } from './wiki.ts'

export type RouteDeps = ChatDeps &
  EmbeddingsDeps &
  LogsDeps &
  LogDetailDeps &
  LogSummaryDeps &
  UsageDeps &
  RateDeps &
  ModelRouteDeps &
  BillingUsageDeps &
  FilesDeps &
  ImageRouteDeps &
  VideoRouteDeps &
  AudioRouteDeps &
  WikiRouteDeps &
  OperatorViewDeps

const get = (handler: Handler) => ({ GET: { handler } })
const post = (handler: Handler) => ({ POST: { handler } })
/** No key is checked on open routes, and no body is read. */
const OPEN_MAX_BODY_BYTES = 64 * 1024
/** Registers a handler that needs no key, for GET and HEAD. */
const open = (handler: Handler) => {
  const route = { handler, maxBodyBytes: OPEN_MAX_BODY_BYTES }
  return { GET: route, HEAD: route }
}
const probe = (handler: Handler) => {
  const route = { handler, maxBodyBytes: OPEN_MAX_BODY_BYTES, isAnsweredWhileDraining: true }
  return { GET: route, HEAD: route }
}

/** All routes that `schemas/endpoints/index.ts` describes: paths with braces in place of a parameter. */
export interface Routes extends RouteTable {
  readonly endpoints: readonly { readonly method: string; readonly path: string }[]
}

export function routes(deps: RouteDeps): Routes {
  const withKey = (replies: (caller: Caller) => Observable<Reply>): Handler =>
    pipeline(authenticate(deps), answer(replies))
  const ofCallLog = (replies: (caller: Caller) => Observable<Reply>): Handler =>
    pipeline(authenticate(deps), limitLogReads(deps), answer(replies))
  const listPublic = publicModels(deps)
  const listLogs = logs(deps)
  const showLog = logDetail(deps)
  const sumLogsUp = logSummary(deps)
  const reportUsage = usage(deps)
  const reportBilling = billingUsage(deps)
  const reference = makeReference()
  const ofLog = get(ofCallLog(({ known, request }) => showLog(known, request)))
  const answered: Answered = (work) => ({
    handler: pipeline(authenticate(deps), rateLimit(deps), answer(work)),
  })
  const free: Answered = (work) => ({ handler: withKey(work) })
  const ofModels = modelRoutes(deps, answered)
  const families = [
    ...imageRoutes(deps, answered),
    ...videoRoutes(deps, answered),
    ...audioRoutes(deps, answered),
    ...wikiRoutes(deps, free),
  ]
  const familyAt = pathRouter(families)
  const filesByMethod = open(files(deps))
  const byPattern = [[LOG_PATH, ofLog] as const, [FILE_PATH, filesByMethod] as const]
  const matching = (path: string) => {
    if (LOG_PATTERN.test(path)) return ofLog
    return ofModels.at(path) ?? (path.startsWith(FILES_PATH) ? filesByMethod : familyAt(path))
  }
  const byPath = new Map<string, Record<string, Route>>([
    ['/v1/chat/completions', post(chat(deps, DIALECTS['chat-completions']))],
    ['/v1/messages', post(chat(deps, DIALECTS.messages))],
    ['/v1/messages/count_tokens', post(countTokens(deps, 'messages'))],
    ['/v1/responses', post(chat(deps, DIALECTS.responses))],
    ['/v1/embeddings', post(embeddings(deps))],
    ['/api/v1/models/public', open(() => listPublic())],
    ['/v1/key/balance', get(withKey(({ known }) => balance(known)))],
    ['/v1/dashboard/billing/subscription', get(withKey(({ known }) => billingSubscription(known)))],
    ['/v1/dashboard/billing/usage', get(withKey(({ known, request }) => reportBilling(known, request)))],
    ['/v1/dashboard/billing/credit_grants', get(withKey(({ known }) => creditGrants(known)))],
    ['/api/v1/usage', get(withKey(({ known, request }) => reportUsage(known, request)))],
    ['/v1/logs', get(ofCallLog(({ known, request }) => listLogs(known, request)))],
    ['/v1/logs/summary', get(ofCallLog(({ known, request }) => sumLogsUp(known, request)))],
    ['/openapi.json', open(() => referenceDocument(reference))],
    ['/docs', open(() => referencePage(reference))],
    [REFERENCE_SCRIPT_PATH, open(() => referenceScript(reference))],
    ['/', open(() => toReference)],
    ['/healthz', probe(health)],
    ['/readyz', probe(readiness(deps))],
    ['/metrics', probe(metrics(deps))],
  ])
  return {
    get: (path) => byPath.get(path) ?? matching(path),
    entries: () => byPath.entries(),
    endpoints: [
      ...byPath,
      ...byPattern,
      ...[...ofModels.routed, ...families].map(({ path, methods }) => [path, methods] as const),
    ].flatMap(([path, methods]) => Object.keys(methods).map((method) => ({ method, path }))),
  }
}

const LOG_PATH = '/v1/logs/{id}'
const LOG_PATTERN = /^\/v1\/logs\/[^/]+$/

/** The key has slashes. */
const FILE_PATH = `${FILES_PATH}{key}`

/** Returns the handlers of the operators' listener: those that need no token. */
export function adminRoutes(deps: OperatorViewDeps): ReadonlyMap<string, Record<string, Route>> {
  const open: OperatorViewDeps = { ...deps, operatorAccess: () => 'open' }
  const reference = makeReference()
  return new Map<string, Record<string, Route>>([
    ['/healthz', probe(health)],
    ['/readyz', probe(readiness(open))],
    ['/metrics', probe(metrics(open))],
    ['/openapi.json', probe(() => referenceDocument(reference))],
    ['/docs', probe(() => referencePage(reference))],
    [REFERENCE_SCRIPT_PATH, probe(() => referenceScript(reference))],
  ])
}
