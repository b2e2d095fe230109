/**
 * `POST /v1/messages/count_tokens`: passed through where a native channel serves the model. It runs nothing and costs
 * nothing, so it leaves no row. Source: decisions, "Chat".
 */
import { Buffer } from 'node:buffer'
import { catchError, Observable } from 'rxjs'
import { Failure } from '../schemas/failure.ts'
import type { Catalog } from '../src/core/catalog.ts'
import { nextRoute } from '../src/core/routing.ts'
import type { Pipeline, Reply } from '../src/http/exchange.ts'
import { messagesDialect, messagesNative } from '../src/protocols/messages.ts'
import type { UpstreamFailure } from '../src/upstream/failure.ts'
import type { UpstreamEvent } from '../src/upstream/observe.ts'
import type { Credentials } from './credentials.ts'
import { authenticated, type Caller } from './stages/authenticate.ts'
import type { UpstreamCallRequest } from './stages/forward.ts'
import { type RateDeps, unrecorded, withinAccountLimits } from './stages/rate.ts'
import { readCall } from './stages/read-call.ts'
import { type PricedCall, selectModel } from './stages/select-model.ts'
import { requireBalance } from './stages/wallet-gate.ts'
import { brokenConnection, refusedByUpstream, tooLargeAnswer } from './upstream-error.ts'

const DEADLINE_MS = 30_000
const MAX_ANSWER_BYTES = 65_536

export interface CountTokensDeps extends RateDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  readonly openCountTokens: (request: UpstreamCallRequest) => Observable<UpstreamEvent>
}

/** The client's request, the model named as the one channel that is asked has it. */
function requestFor({ call, model, routes, exchange }: PricedCall): UpstreamCallRequest {
  const native = routes.filter(({ channel }) => channel.protocol === 'messages')
  const route = nextRoute(native, [], null)
  if (route === null)
    throw new Failure('no_channel_available', `No channel counts tokens for the model '${model.id}'.`)
  const { channel, upstreamModel } = route
  return {
    channel,
    protocol: 'messages',
    upstreamModel,
    stream: false,
    query: '',
    header: exchange.header,
    body: messagesNative.wire(call, {
      upstreamModel,
      outputCeiling: null,
      outputLimitField: channel.output_limit_field,
      askUsage: false,
      fetched: new Map(),
    }).body,
    requestId: exchange.requestId,
    deadlineMs: DEADLINE_MS,
    onFreshConnection: false,
    traceparent: null,
  }
}

/** To count twice harms no one: where a kept connection proves dead, the upstream is asked on one of its own. */
function asked(
  open: CountTokensDeps['openCountTokens'],
  request: UpstreamCallRequest,
): Observable<UpstreamEvent> {
  return open(request).pipe(
    catchError((failure: UpstreamFailure) => {
      if (!failure.mayBeStale) throw failure
      return open({ ...request, onFreshConnection: true })
    }),
  )
}

/** The upstream's answer in one piece, or its refusal in the protocol's shape. */
function answer(events: Observable<UpstreamEvent>): Observable<Reply> {
  return new Observable((subscriber) => {
    const pieces: Buffer[] = []
    let length = 0
    let status = 0
    let retryAfter: string | null = null
    return events.subscribe({
      next(event) {
        if (event.type === 'head') {
          status = event.status
          retryAfter = event.headers.get('retry-after') ?? null
          return
        }
        length += event.bytes.length
        if (length > MAX_ANSWER_BYTES) subscriber.error(tooLargeAnswer().error)
        else pieces.push(Buffer.from(event.bytes))
      },
      error: (failure: UpstreamFailure) => subscriber.error(brokenConnection(failure).error),
      complete() {
        const body = Buffer.concat(pieces, length)
        if (status !== 200) return subscriber.error(refusedByUpstream(status, body, retryAfter).error)
        subscriber.next({ type: 'full', status, headers: [['content-type', 'application/json']], body })
        subscriber.complete()
      },
    })
  })
}

export function countTokens(deps: CountTokensDeps): Pipeline {
  const count = (caller: Caller): Observable<Reply> => {
    requireBalance(caller)
    const priced = selectModel(deps.catalog(), readCall(messagesDialect, caller))
    return answer(asked(deps.openCountTokens, requestFor(priced)))
  }
  const withinLimits = withinAccountLimits(deps, { refusalsOf: () => unrecorded, work: count })
  return authenticated(deps.credentials, withinLimits)
}
