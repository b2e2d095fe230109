/** Which pipeline answers which endpoint. */
import { balance } from '../../../pipelines/accounts/balance.ts'
import {
  type BillingUsageDeps,
  billingSubscription,
  billingUsage,
  creditGrants,
  type GrantDeps,
} from '../../../pipelines/accounts/billing.ts'
import type { ModelsDeps } from '../../../pipelines/accounts/model-lists.ts'
import { listPublicModels } from '../../../pipelines/accounts/models.ts'
import { type UsageDeps, usage } from '../../../pipelines/accounts/usage.ts'
import type { LogDetailDeps } from '../../../pipelines/call-log/detail.ts'
import { listLogs, showLog, sumLogs } from '../../../pipelines/call-log/logs.ts'
import type { LogPageDeps } from '../../../pipelines/call-log/page.ts'
import type { LogSummaryDeps } from '../../../pipelines/call-log/summary.ts'
import { chat } from '../../../pipelines/chat/chat.ts'
import { countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { embeddings } from '../../../pipelines/chat/embeddings.ts'
import { CONSOLE_PATH, type Console, consolePage, isAtHost } from '../../../pipelines/console.ts'
import type { McpDeps } from '../../../pipelines/knowledge/mcp.ts'
import { files, type LinkedFiles } from '../../../pipelines/media/files/files.ts'
import { referenceDocument, referencePage, referenceScript, toPage } from '../../../pipelines/openapi.ts'
import { health, metrics, type OperatorViewDeps, readiness } from '../../../pipelines/operator-view.ts'
import { paymentWebhook, WEBHOOK_PATH, type WebhookDeps } from '../../../pipelines/payments/webhook.ts'
import { FILES_PATH } from '../../core/media/file-link.ts'
import type { Handler } from '../../http/handler.ts'
import type { Route, RouteTable } from '../../http/route.ts'
import { REFERENCE_SCRIPT_PATH } from '../../openapi/page.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { audioRoutes } from './audio.ts'
import { imageRoutes } from './images.ts'
import { type ManagementRouteDeps, managementRoutes } from './management.ts'
import { modelRoutes } from './models.ts'
import { REFERENCE } from './reference.ts'
import { responseRoutes } from './responses.ts'
import { pathRouter, type RoutedPath, routed } from './routed.ts'
import { videoRoutes } from './videos.ts'
import { wikiRoutes } from './wiki.ts'

export type RouteDeps = LogPageDeps &
  LogDetailDeps &
  LogSummaryDeps &
  UsageDeps &
  ModelsDeps &
  BillingUsageDeps &
  GrantDeps &
  LinkedFiles &
  McpDeps &
  ManagementRouteDeps &
  WebhookDeps &
  OperatorViewDeps & {
    /** What calls of clients take. */
    readonly groups: CallGroups
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
  const { groups } = deps
  const { access } = groups
  const log = routed('/v1/logs/{id}', { GET: showLog(access, deps) })
  // The key has slashes.
  const file = routed(`${FILES_PATH}{key}`, { GET: files(deps) }, UNCOUNTED)
  const pages =
    deps.console &&
    routed(CONSOLE_PATH, { GET: consolePage(deps.console) }, { ...UNCOUNTED, isSameOrigin: true })
  const ofModels = modelRoutes(groups, deps)
  const families = [
    ...responseRoutes(groups),
    ...imageRoutes(groups),
    ...videoRoutes(groups),
    ...audioRoutes(groups),
    ...wikiRoutes(access, deps),
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
    routed('/v1/chat/completions', { POST: chat(groups, DIALECTS['chat-completions']) }),
    routed('/v1/messages', { POST: chat(groups, DIALECTS.messages) }),
    routed('/v1/messages/count_tokens', { POST: countTokens(groups, 'messages') }),
    routed('/v1/responses', { POST: chat(groups, DIALECTS.responses) }),
    routed('/v1/embeddings', { POST: embeddings(access) }),
    routed('/api/v1/models/public', { GET: listPublicModels(deps) }, OPEN),
    routed('/v1/key/balance', { GET: balance(access) }),
    routed('/v1/dashboard/billing/subscription', { GET: billingSubscription(access, deps) }),
    routed('/v1/dashboard/billing/usage', { GET: billingUsage(access, deps) }),
    routed('/v1/dashboard/billing/credit_grants', { GET: creditGrants(access, deps) }),
    routed('/api/v1/usage', { GET: usage(access, deps) }),
    routed('/v1/logs', { GET: listLogs(access, deps) }),
    routed('/v1/logs/summary', { GET: sumLogs(access, deps) }),
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
