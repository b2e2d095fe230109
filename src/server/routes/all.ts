/** Which pipeline answers which endpoint. */
import { balance } from '../../../pipelines/accounts/balance.ts'
import {
  type BillingUsageDeps,
  billingSubscription,
  billingUsage,
  creditGrants,
  type GrantDeps,
} from '../../../pipelines/accounts/billing.ts'
import { listPublicModels } from '../../../pipelines/accounts/models.ts'
import { type UsageDeps, usage } from '../../../pipelines/accounts/usage.ts'
import { type LogsDeps, listLogs, showLog, sumLogs } from '../../../pipelines/call-log/logs.ts'
import { type ChatDeps, chat } from '../../../pipelines/chat/chat.ts'
import { countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { type EmbeddingsDeps, embeddings } from '../../../pipelines/chat/embeddings.ts'
import { CONSOLE_PATH, type Console, consolePage, isAtHost } from '../../../pipelines/console.ts'
import { type FilesDeps, files } from '../../../pipelines/media/files/files.ts'
import { referenceDocument, referencePage, referenceScript, toPage } from '../../../pipelines/openapi.ts'
import { health, metrics, type OperatorViewDeps, readiness } from '../../../pipelines/operator-view.ts'
import { paymentWebhook, WEBHOOK_PATH, type WebhookDeps } from '../../../pipelines/payments/webhook.ts'
import { FILES_PATH } from '../../core/media/file-link.ts'
import type { Handler } from '../../http/handler.ts'
import type { Route, RouteTable } from '../../http/route.ts'
import { REFERENCE_SCRIPT_PATH } from '../../openapi/page.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import { type AudioRouteDeps, audioRoutes } from './audio.ts'
import { type ImageRouteDeps, imageRoutes } from './images.ts'
import { type ManagementRouteDeps, managementRoutes } from './management.ts'
import { type ModelRouteDeps, modelRoutes } from './models.ts'
import { REFERENCE } from './reference.ts'
import { responseRoutes, type StoredRouteDeps } from './responses.ts'
import { pathRouter } from './routed.ts'
import { type VideoRouteDeps, videoRoutes } from './videos.ts'
import { type WikiRouteDeps, wikiRoutes } from './wiki.ts'

export type RouteDeps = ChatDeps &
  StoredRouteDeps &
  EmbeddingsDeps &
  LogsDeps &
  UsageDeps &
  ModelRouteDeps &
  BillingUsageDeps &
  GrantDeps &
  FilesDeps &
  ImageRouteDeps &
  VideoRouteDeps &
  AudioRouteDeps &
  WikiRouteDeps &
  ManagementRouteDeps &
  WebhookDeps &
  OperatorViewDeps & {
    /** Null: none is served. */
    readonly console: Console | null
  }

const get = (handler: Handler) => ({ GET: { handler } })
const post = (handler: Handler) => ({ POST: { handler } })
/** No key is checked on open routes, and no body is read. */
const OPEN_MAX_BODY_BYTES = 64 * 1024
/** An event has one object of the payment provider. */
const WEBHOOK_MAX_BODY_BYTES = 512 * 1024
/** Registers a handler that needs no key. */
const open = (handler: Handler) => ({ GET: { handler, maxBodyBytes: OPEN_MAX_BODY_BYTES } })
const probe = (handler: Handler) => ({
  GET: {
    handler,
    maxBodyBytes: OPEN_MAX_BODY_BYTES,
    isAnsweredWhileDraining: true,
    addressLimit: 'never' as const,
  },
})
/** Registers a handler whose links are signed. */
const linked = (handler: Handler) => ({
  GET: { handler, maxBodyBytes: OPEN_MAX_BODY_BYTES, addressLimit: 'never' as const },
})

/** All routes that `schemas/endpoints/index.ts` describes: paths with braces in place of a parameter. */
export interface Routes extends RouteTable {
  readonly endpoints: readonly { readonly method: string; readonly path: string }[]
}

export function routes(deps: RouteDeps): Routes {
  const ofLog = get(showLog(deps))
  const ofModels = modelRoutes(deps)
  const families = [
    ...responseRoutes(deps),
    ...imageRoutes(deps),
    ...videoRoutes(deps),
    ...audioRoutes(deps),
    ...wikiRoutes(deps),
    ...managementRoutes(deps),
  ]
  const familyAt = pathRouter(families)
  const filesByMethod = linked(files(deps))
  const pages = deps.console && {
    GET: {
      handler: consolePage(deps.console),
      maxBodyBytes: OPEN_MAX_BODY_BYTES,
      isSameOrigin: true as const,
      addressLimit: 'never' as const,
    },
  }
  const byPattern = [[LOG_PATH, ofLog] as const, [FILE_PATH, filesByMethod] as const]
  const matching = (path: string) => {
    if (LOG_PATTERN.test(path)) return ofLog
    if (pages && path.startsWith(`${CONSOLE_PATH}/`)) return pages
    return ofModels.at(path) ?? (path.startsWith(FILES_PATH) ? filesByMethod : familyAt(path))
  }
  const byPath = new Map<string, Record<string, Route>>([
    ['/v1/chat/completions', post(chat(deps, DIALECTS['chat-completions']))],
    ['/v1/messages', post(chat(deps, DIALECTS.messages))],
    ['/v1/messages/count_tokens', post(countTokens(deps, 'messages'))],
    ['/v1/responses', post(chat(deps, DIALECTS.responses))],
    ['/v1/embeddings', post(embeddings(deps))],
    ['/api/v1/models/public', open(listPublicModels(deps))],
    ['/v1/key/balance', get(balance(deps))],
    ['/v1/dashboard/billing/subscription', get(billingSubscription(deps))],
    ['/v1/dashboard/billing/usage', get(billingUsage(deps))],
    ['/v1/dashboard/billing/credit_grants', get(creditGrants(deps))],
    ['/api/v1/usage', get(usage(deps))],
    ['/v1/logs', get(listLogs(deps))],
    ['/v1/logs/summary', get(sumLogs(deps))],
    [
      WEBHOOK_PATH,
      { POST: { handler: paymentWebhook(deps), maxBodyBytes: WEBHOOK_MAX_BODY_BYTES, isSameOrigin: true } },
    ],
    ['/openapi.json', open(() => referenceDocument(REFERENCE))],
    ['/docs', open(() => referencePage(REFERENCE))],
    [REFERENCE_SCRIPT_PATH, open(() => referenceScript(REFERENCE))],
    [
      '/',
      open((request) => toPage(deps.console && isAtHost(deps.console, request) ? CONSOLE_PATH : '/docs')),
    ],
    ...(pages ? [[CONSOLE_PATH, pages] as const] : []),
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
  return new Map<string, Record<string, Route>>([
    ['/healthz', probe(health)],
    ['/readyz', probe(readiness(open))],
    ['/metrics', probe(metrics(open))],
    ['/openapi.json', probe(() => referenceDocument(REFERENCE))],
    ['/docs', probe(() => referencePage(REFERENCE))],
    [REFERENCE_SCRIPT_PATH, probe(() => referenceScript(REFERENCE))],
  ])
}
