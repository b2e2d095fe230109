/** All routes of a gateway, with nothing behind them but what a test gives. */
import type { Router } from '../../src/http/router.ts'
import { openRouter, type RouteDeps } from '../../src/server/routes/all.ts'

export function emptyRouter(access: object = {}, more: Partial<RouteDeps> = {}): Router {
  const none = {}
  const idempotency = none
  const orders = { access, idempotency }
  const groups = {
    access,
    idempotency,
    orders,
    background: none,
    mediaTasks: none,
    images: none,
    made: none,
  }
  const deps: unknown = {
    groups,
    models: none,
    spending: none,
    log: none,
    wiki: none,
    files: none,
    management: { access: none, streams: none },
    webhook: none,
    probes: none,
    status: none,
    console: null,
    ...more,
  }
  return openRouter(deps as RouteDeps)
}
