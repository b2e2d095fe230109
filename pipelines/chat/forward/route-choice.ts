/** Chooses the route of each attempt of a call, within the budgets of retries. */
import type { Route } from '../../../src/core/routing/catalog.ts'
import { nextRoute } from '../../../src/core/routing/order.ts'
import type { AdmittedCall } from '../../stages/precharge.ts'
import type { ForwardDeps } from './deps.ts'
import type { AttemptFailure } from './upstream-error.ts'

const channelOf = ({ channel }: Route): string => channel.id

export class RouteChoice {
  readonly #deps: Pick<ForwardDeps, 'health' | 'retries' | 'retryBudget'>
  readonly #admitted: Pick<AdmittedCall, 'routes' | 'pin'>
  /** In the order of the attempts. */
  readonly tried: Route[] = []
  /** Retries taken from the budget that all calls share. */
  #retries = 0

  constructor(
    deps: Pick<ForwardDeps, 'health' | 'retries' | 'retryBudget'>,
    admitted: Pick<AdmittedCall, 'routes' | 'pin'>,
  ) {
    this.#deps = deps
    this.#admitted = admitted
    deps.retryBudget.callBegan()
  }

  /** Returns the next route and marks it as tried; null when every route has been. */
  next(): Route | null {
    const { routes, pin } = this.#admitted
    const { tried } = this
    const { health } = this.#deps
    const open = routes.length === 1 ? routes : health.available(routes, channelOf)
    // A call that was admitted before its channels were paused makes its first attempt.
    const others = tried.length === 0 ? routes : health.active(routes, channelOf)
    const route = nextRoute(open, tried, pin) ?? nextRoute(others, tried, pin)
    if (route !== null) tried.push(route)
    return route
  }

  /** Returns the route of another attempt after `failure`; null where there is none, or a budget is used up. */
  afterFailure({ isRetryable }: AttemptFailure, attempts: number): Route | null {
    const { health, retries, retryBudget } = this.#deps
    if (!isRetryable || attempts > retries()) return null
    if (nextRoute(health.active(this.#admitted.routes, channelOf), this.tried, null) === null) return null
    if (!retryBudget.take()) return null
    this.#retries++
    return this.next()
  }

  /** Gives back what the call has taken of the shared budget. */
  end(): void {
    const { retryBudget } = this.#deps
    retryBudget.callEnded()
    while (this.#retries-- > 0) retryBudget.retryEnded()
  }
}
