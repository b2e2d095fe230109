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
import type { Route, RouteTable } from '../../http/router.ts'
import { REFERENCE_SCRIPT_PATH } from '../../openapi/page.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import { type AudioRouteDeps, audioRoutes } from './audio.ts'
import { type ImageRouteDeps, imageRoutes } from './images.ts'
import { type ManagementRouteDeps, managementRoutes } from './management.ts'
import { type ModelRouteDeps, modelRoutes } from './models.ts'
import { REFERENCE } from './reference.ts'
import { responseRoutes, type StoredRouteDeps } from './responses.ts'
import { pathRouter, type RoutedPath, routed } from './routed.ts'
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

/** No key is checked on open routes, and no body is read. */
const OPEN = { maxBodyBytes: 64 * 1024 } as const
/** Pages of the console, and files whose links are signed. */
const UNCOUNTED = { ...OPEN, addressLimit: 'never' } as const
const PROBE = { ...UNCOUNTED, isAnsweredWhileDraining: true } as const
/** An event has one object of the payment provider. */
const WEBHOOK = { maxBodyBytes: 512 * 1024, isSameOrigin: true } as const

/** All routes that `schemas/endpoints/index.ts` describes: paths with braces in place of a parameter. */
interface Routes extends RouteTable {
  readonly endpoints: readonly { readonly method: string; readonly path: string }[]
}

export function routes(deps: RouteDeps): Routes {
  const log = routed('/v1/logs/{id}', { GET: showLog(deps) })
  // The key has slashes.
  const file = routed(`${FILES_PATH}{key}`, { GET: files(deps) }, UNCOUNTED)
  const pages =
    deps.console &&
    routed(CONSOLE_PATH, { GET: consolePage(deps.console) }, { ...UNCOUNTED, isSameOrigin: true })
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
  const matching = (path: string) => {
    if (LOG_PATTERN.test(path)) return log.methods
    if (pages && path.startsWith(`${CONSOLE_PATH}/`)) return pages.methods
    return ofModels.at(path) ?? (path.startsWith(FILES_PATH) ? file.methods : familyAt(path))
  }
  const first: Handler = (request) =>
    toPage(deps.console && isAtHost(deps.console, request) ? CONSOLE_PATH : '/docs')
  const exact = [
    routed('/v1/chat/completions', { POST: chat(deps, DIALECTS['chat-completions']) }),
    routed('/v1/messages', { POST: chat(deps, DIALECTS.messages) }),
    routed('/v1/messages/count_tokens', { POST: countTokens(deps, 'messages') }),
    routed('/v1/responses', { POST: chat(deps, DIALECTS.responses) }),
    routed('/v1/embeddings', { POST: embeddings(deps) }),
    routed('/api/v1/models/public', { GET: listPublicModels(deps) }, OPEN),
    routed('/v1/key/balance', { GET: balance(deps) }),
    routed('/v1/dashboard/billing/subscription', { GET: billingSubscription(deps) }),
    routed('/v1/dashboard/billing/usage', { GET: billingUsage(deps) }),
    routed('/v1/dashboard/billing/credit_grants', { GET: creditGrants(deps) }),
    routed('/api/v1/usage', { GET: usage(deps) }),
    routed('/v1/logs', { GET: listLogs(deps) }),
    routed('/v1/logs/summary', { GET: sumLogs(deps) }),
    routed(WEBHOOK_PATH, { POST: paymentWebhook(deps) }, WEBHOOK),
    ...referenceRoutes(OPEN),
    routed('/', { GET: first }, OPEN),
    ...(pages ? [pages] : []),
    ...probes(deps),
  ]
  const byPath = tableOf(exact)
  return {
    get: (path) => byPath.get(path) ?? matching(path),
    entries: () => byPath.entries(),
    endpoints: [...exact, log, file, ...ofModels.routed, ...families].flatMap(({ path, methods }) =>
      Object.keys(methods).map((method) => ({ method, path })),
    ),
  }
}

const LOG_PATTERN = /^\/v1\/logs\/[^/]+$/

const document: Handler = () => referenceDocument(REFERENCE)
const page: Handler = () => referencePage(REFERENCE)
const script: Handler = () => referenceScript(REFERENCE)

const referenceRoutes = (options: Omit<Route, 'handler'>): RoutedPath[] => [
  routed('/openapi.json', { GET: document }, options),
  routed('/docs', { GET: page }, options),
  routed(REFERENCE_SCRIPT_PATH, { GET: script }, options),
]

const probes = (deps: OperatorViewDeps): RoutedPath[] => [
  routed('/healthz', { GET: health }, PROBE),
  routed('/readyz', { GET: readiness(deps) }, PROBE),
  routed('/metrics', { GET: metrics(deps) }, PROBE),
]

const tableOf = (paths: readonly RoutedPath[]): ReadonlyMap<string, RoutedPath['methods']> =>
  new Map(paths.map(({ path, methods }) => [path, methods]))

/** Returns the handlers of the operators' listener: those that need no token. */
export const adminRoutes = (deps: OperatorViewDeps): RouteTable =>
  tableOf([...probes({ ...deps, operatorAccess: () => 'open' }), ...referenceRoutes(PROBE)])
