/** Which handler answers which route. */

import { of } from 'rxjs'
import type { Console } from '../../../pipelines/console.ts'
import type { LinkedFiles } from '../../../pipelines/media/files/files.ts'
import { health, metrics, type OperatorViewDeps, readiness } from '../../../pipelines/operator-view.ts'
import { answerPaymentWebhook, type WebhookDeps } from '../../../pipelines/payments/webhook.ts'
import { type StatusDeps, showStatus } from '../../../pipelines/status.ts'
import { ROUTES, type RouteName } from '../../../schemas/routes.ts'
import type { Reply } from '../../http/handler.ts'
import { type RoutedPath, Router } from '../../http/router.ts'
import { type CallRouteDeps, callRoutes } from './calls.ts'
import { consoleRoutes, referenceRoutes } from './console.ts'
import { type ManagementServices, managementRoutes } from './management.ts'
import { type Answer, type Family, OPEN, PROBE } from './options.ts'
import { taskRoutes } from './tasks.ts'

export interface RouteDeps extends CallRouteDeps {
  readonly files: LinkedFiles
  readonly management: ManagementServices
  readonly webhook: WebhookDeps
  readonly probes: OperatorViewDeps
  readonly status: StatusDeps
  /** Null: none is served. */
  readonly console: Console | null
}

/** An event has one object of the payment provider. */
const WEBHOOK = { maxBodyBytes: 512 * 1024, isSameOrigin: true } as const

export function openRouter(deps: RouteDeps): Router {
  const answers: Readonly<Record<RouteName, Answer>> = {
    ...callRoutes(deps),
    ...taskRoutes(deps.groups, deps.files),
    ...consoleRoutes(deps.console),
    ...probeRoutes(deps.probes),
    ...agentRoutes,
    showStatus: { handler: showStatus(deps.status), ...OPEN },
    takePaymentEvent: { handler: answerPaymentWebhook(deps.webhook), ...WEBHOOK },
  }
  return new Router([...toPaths(answers), ...managementRoutes(deps.management)])
}

/** Makes the router of the operators' listener: of what needs no token. */
export const openAdminRouter = (deps: OperatorViewDeps): Router =>
  new Router(
    toPaths({ ...probeRoutes({ ...deps, operatorAccess: () => 'open' }), ...referenceRoutes(PROBE) }),
  )

const NO_CONTENT: Reply = { type: 'full', status: 204, headers: [], body: '' }
const accept = { handler: () => of(NO_CONTENT), ...OPEN }

/** Requests that a coding agent makes to its vendor. Unanswered, it retries or waits. */
const agentRoutes = {
  greetAgent: accept,
  takeAgentEvents: accept,
  readAgentSettings: accept,
  takeAgentReports: accept,
  saveAgentSettings: accept,
} satisfies Family

const probeRoutes = (deps: OperatorViewDeps) =>
  ({
    checkHealth: { handler: health, ...PROBE },
    checkReadiness: { handler: readiness(deps), ...PROBE },
    readMetrics: { handler: metrics(deps), ...PROBE },
  }) satisfies Family

/** Returns the answers with their methods and paths, in the order of the list of routes. */
const toPaths = (answers: Family): RoutedPath[] =>
  (Object.keys(ROUTES) as RouteName[]).flatMap((name) => {
    const answer = answers[name]
    if (answer == null) return []
    const route = typeof answer === 'function' ? { handler: answer } : answer
    const [method, ...paths] = ROUTES[name]
    return paths.map((path) => [method, path, route] as const)
  })
