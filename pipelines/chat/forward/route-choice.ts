/**
 * Chooses the route of each attempt of a call, within the budgets of retries: channels of its model in turn, another
 * key of a channel whose key is refused, then the models that serve in place of it. See docs/api-rules.md, "Attempts".
 */

import { normalizeText } from '../../../src/core/normalize-text.ts'
import { estimateAt } from '../../../src/core/pricing/estimate.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { chooseNextRoute, type RankRoute } from '../../../src/core/routing/order.ts'
import type { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { RequestSource } from '../../../src/protocols/chat-completions/dialect.ts'
import type { ChatCall } from '../../../src/protocols/dialect.ts'
import type { AttemptFailure } from '../../calls/upstream-error.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { ServedModel } from '../select-model.ts'
import type { Forwarding } from './deps.ts'

const readChannelId = ({ channel }: Route): string => channel.id

/** Share of the calls that measure routes other than the fastest. */
const MEASURING_SHARE = 0.05
/** Further keys that one call tries at its channels. */
const MAX_KEY_RETRIES = 5

export class RouteChoice {
  readonly #deps: Forwarding
  /** The call that the routes are for; without its body once no other attempt follows. */
  admitted: AdmittedCall
  readonly #random: () => number
  /** In the order of the attempts, of all models. */
  readonly tried: Route[] = []
  /** The model that serves the call. */
  served: ServedModel
  /** Place in the list of fallbacks. */
  #nextFallback = 0
  /** Routes tried of the model that serves, and attempts made before it did. */
  #triedHere: Route[] = []
  #attemptsBefore = 0
  #keyRetries = 0
  /** Another key of the channel that was tried last is ready. */
  #hasOtherKey = false
  /** The upstream may have refused the option by which a stream is asked for its usage. */
  #leavesUsageOut = false
  /** Retries taken from the budget that all calls share. */
  #retries = 0

  constructor(deps: Forwarding, admitted: AdmittedCall) {
    this.#deps = deps
    this.admitted = admitted
    this.served = { model: admitted.model, routes: admitted.routes }
    this.#random = deps.random ?? Math.random
    deps.retryBudget.beginCall()
  }

  /** Returns the next route of the model and marks it as tried; null when every route has been. */
  next(): Route | null {
    const { routes } = this.served
    const { pin } = this.admitted
    const { health } = this.#deps
    const tried = this.#triedHere
    const open = health.listAvailable(routes, readChannelId)
    // A call that was admitted before its channels were paused makes its first attempt.
    const others = tried.length === 0 ? routes : health.listActive(routes, readChannelId)
    const rank = this.#rank()
    const route =
      chooseNextRoute(open, tried, pin, this.#random, rank) ??
      chooseNextRoute(others, tried, pin, this.#random, rank)
    return route && this.#mark(route)
  }

  #mark(route: Route): Route {
    this.#triedHere.push(route)
    const channel = this.#deps.health.keys.pick(route.channel, this.admitted.pin)
    const keyed = channel === route.channel ? route : { ...route, channel }
    this.tried.push(keyed)
    return keyed
  }

  /** Returns the order of routes of one priority, where the model asks for one; null: by weight. */
  #rank(): RankRoute | null {
    const { model } = this.served
    if (model.strategy === 'priority') return null
    if (model.strategy === 'least_latency')
      return this.#random() < MEASURING_SHARE ? null : this.#deps.health.latencies.of
    const { call, request } = this.admitted
    const options = { mode: 'worst_case', now: request.submittedAt } as const
    // Where the operator's own price is not known, it is taken for the customer's.
    return ({ cost, channel }) => {
      const pricing = channel.cost?.[model.id] ?? model.entry.pricing!
      return Number(estimateAt({ price: cost ?? model.price, pricing }, model.entry, call, options))
    }
  }

  /** Returns the call with the model that serves it by now. */
  setModel(admitted: AdmittedCall): AdmittedCall {
    const { model, routes } = this.served
    return model === admitted.model ? admitted : { ...admitted, model, routes }
  }

  /** Notes the time to the first byte of an attempt that succeeded. */
  noteTime(route: Route, ms: number): void {
    if (this.served.model.strategy === 'least_latency') this.#deps.health.latencies.noteTime(route, ms)
  }

  /** Lets a refused key of a pool rest. Returns whether its channel goes on with another one. */
  restKey({ channel }: Route, { keyRestMs }: AttemptFailure): boolean {
    this.#hasOtherKey =
      channel.api_keys.length > 0 &&
      keyRestMs !== undefined &&
      this.#deps.health.keys.rest(channel, keyRestMs)
    return this.#hasOtherKey
  }

  /** Returns whether an attempt asks for the usage of a stream. */
  asksUsage(route: Route): boolean {
    return !this.#leavesUsageOut && knowsUsageOption(route, this.#deps.usageOptionRefusals)
  }

  /** Notes that an attempt is answered. One without the usage option proves that the error before was about the option. */
  noteSuccess(route: Route): void {
    if (this.#leavesUsageOut) this.#deps.usageOptionRefusals.add(route)
  }

  /** Returns the route of another attempt after `failure`; null where there is none, or a budget is used up. */
  chooseAfterFailure(route: Route, failure: AttemptFailure, attempts: number): Route | null {
    const isLeftOut = this.#leavesUsageOut || this.#deps.usageOptionRefusals.has(route)
    if (!isLeftOut && rejectsUsageOption(route, this.admitted.call, failure)) {
      this.#leavesUsageOut = true
      return route
    }
    const other = this.#chooseOtherRoute(failure, attempts)
    if (other !== null) this.#leavesUsageOut = false
    return other
  }

  #chooseOtherRoute(failure: AttemptFailure, attempts: number): Route | null {
    if (this.#hasOtherKey && this.#keyRetries < MAX_KEY_RETRIES) {
      this.#keyRetries++
      return this.#mark(this.#triedHere.pop()!)
    }
    const here = attempts - this.#attemptsBefore - this.#keyRetries
    return this.#chooseOtherChannel(failure, here) ?? this.#chooseOtherModel(failure, attempts)
  }

  #chooseOtherChannel({ isRetryable }: AttemptFailure, attempts: number): Route | null {
    const { health, retries } = this.#deps
    if (!isRetryable || attempts > retries()) return null
    if (chooseNextRoute(health.listActive(this.served.routes, readChannelId), this.#triedHere, null) === null)
      return null
    return this.#takeRetry() ? this.next() : null
  }

  /** Goes on with the next model that has a channel. */
  #chooseOtherModel({ isRetryable, keyRestMs }: AttemptFailure, attempts: number): Route | null {
    const { fallbacks } = this.admitted
    if (!isRetryable && keyRestMs === undefined) return null
    while (this.#nextFallback < fallbacks.length) {
      const served = fallbacks[this.#nextFallback++]!
      if (this.#deps.health.listActive(served.routes, readChannelId).length === 0) continue
      if (!this.#takeRetry()) return null
      this.served = served
      this.#triedHere = []
      this.#attemptsBefore = attempts - this.#keyRetries
      return this.next()
    }
    return null
  }

  #takeRetry(): boolean {
    if (!this.#deps.retryBudget.take()) return false
    this.#retries++
    return true
  }

  /** Gives back what the call has taken of the shared budget. */
  end(): void {
    const { retryBudget } = this.#deps
    retryBudget.endCall()
    while (this.#retries-- > 0) retryBudget.retryEnded()
  }
}

/** Returns false for an upstream that reports usage without being asked, or has refused the option. */
const knowsUsageOption = (route: Route, refusals: UsageOptionRefusals): boolean =>
  !route.channel.quirks.includes('no-usage-option') && !refusals.has(route)

const OPTION = 'stream_options'
/** A larger request is not searched for the option's name: its error is returned as it is. */
const MAX_SEARCHED_BYTES = 1024 * 1024
/** Texts that name the option as the cause, by their beginning: text that an upstream quotes follows later. */
const NAMES_OPTION_AS_OFFENCE = new RegExp(
  '^(?:(?:bad request|invalid request|validation error|error)\\W{1,3})?(?:[\\w ]{0,40}?\\b(?:unrecogni[sz]ed|unknown|unsupported|unexpected|invalid|extra|additional|' +
    'not (?:supported|allowed|permitted))\\b[\\w :,.]{0,60}\\W{0,3}|' +
    `\\W{0,3}(?:the |parameter |argument |field |option |property |body\\.)*\\W{0,3})${OPTION}\\b`,
  'i',
)

const isOption = (parameter: string): boolean =>
  parameter === OPTION || parameter === `${OPTION}.include_usage`

/**
 * Returns whether an error may have copied the option's name from the request itself, the option apart. A customer who
 * could make an upstream quote it would be billed by estimates.
 */
function mayBeQuoted({ body }: Pick<RequestSource, 'body'>): boolean {
  if (body.length > MAX_SEARCHED_BYTES) return true
  const { [OPTION]: _, ...rest } = JSON.parse(body.toString('utf8')) as Record<string, unknown>
  return normalizeText(JSON.stringify(rest), 'NFKC').toLowerCase().includes(OPTION)
}

/** Returns whether the upstream refused the option that asks for usage, and nothing of the client's. */
export function rejectsUsageOption(route: Route, call: ChatCall, failure: AttemptFailure): boolean {
  if (route.protocol !== 'chat-completions') return false
  if (!call.stream || failure.code !== 'invalid_request') return false
  const { parameter = null, message } = failure
  const isNamed = parameter === null ? NAMES_OPTION_AS_OFFENCE.test(message) : isOption(parameter)
  if (!isNamed) return false
  const source = call.source as RequestSource
  // The client answers for whatever else it wants of the stream. A translation wants nothing else.
  const options = route.isTranslated ? [] : Object.keys(source.request.stream_options ?? {})
  return options.every((option) => option === 'include_usage') && !mayBeQuoted(source)
}
