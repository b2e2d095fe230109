/** `GET /healthz`, `/readyz` and `/metrics`: how the service does, for everybody and for those who run it. */
import { defer, from, map, type Observable, of } from 'rxjs'
import { readinessQuery } from '../schemas/endpoints/service.ts'
import { Failure } from '../schemas/failure.ts'
import { type OperatorAccess, sameToken } from '../src/core/keys/operator-access.ts'
import { findBearerToken } from '../src/core/keys/presented.ts'
import type { GatewayRequest, Handler, Reply } from '../src/http/handler.ts'
import { readQuery } from './calls/query.ts'

export interface OperatorViewDeps {
  /** Returns the reason why the service is not ready; null while every engine answers and nothing drains. */
  readonly unreadiness: () => string | null
  /** Returns the reason why no call is taken; null while calls are, whichever engine is down. */
  readonly callRefusal: () => string | null
  /** Prometheus text of the whole service. */
  readonly metricsText: () => Promise<string>
  /** Returns the access to metrics and details on this listener. */
  readonly operatorAccess: () => OperatorAccess
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const text = (status: number, body: string, type = 'text/plain; charset=utf-8'): Reply => ({
  type: 'full',
  status,
  headers: [['content-type', type]],
  body,
})

function isOperator(access: OperatorAccess, { header }: Pick<GatewayRequest, 'header'>): boolean {
  if (access === 'open' || access === 'closed') return access === 'open'
  const token = findBearerToken(header)
  return token !== null && sameToken(access.token, token)
}

export const health: Handler = () => of(text(200, 'ok\n'))

/** Answers the readiness of all, or `?for=calls`. Only operators see the reason in the body. */
export const readiness =
  ({ unreadiness, callRefusal, operatorAccess }: OperatorViewDeps): Handler =>
  (request) =>
    defer(() => {
      const { for: subject } = readQuery(readinessQuery, request.query)
      const reason = subject === 'calls' ? callRefusal() : unreadiness()
      if (reason === null) return of(text(200, 'ready\n'))
      return of(text(503, isOperator(operatorAccess(), request) ? `not ready: ${reason}\n` : 'not ready\n'))
    })

export const metrics =
  ({ metricsText, operatorAccess }: OperatorViewDeps): Handler =>
  (request): Observable<Reply> =>
    defer(() => {
      const access = operatorAccess()
      if (access === 'closed') throw new Failure('not_found', 'There is no endpoint at /metrics.')
      if (!isOperator(access, request))
        throw new Failure('invalid_api_key', 'The metrics token is missing or wrong.')
      return from(metricsText()).pipe(map((body) => text(200, body, METRICS_CONTENT_TYPE)))
    })
