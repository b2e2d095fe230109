/**
 * `POST /v1/messages/count_tokens`: passed through where a native channel serves the model. It runs nothing and costs
 * nothing, so it leaves no row. Source: decisions, "Chat".
 */
import { concatMap, Observable, of } from 'rxjs'
import { Failure } from '../schemas/failure.ts'
import { type Catalog, isModelAllowed, type Route, resolveAllowlist } from '../src/core/catalog.ts'
import { spliced, topLevelFields } from '../src/core/json-fields.ts'
import { nextRoute } from '../src/core/routing.ts'
import type { Pipeline, Reply } from '../src/http/exchange.ts'
import { invalidField, parseJsonBody } from '../src/protocols/client-json.ts'
import type { UpstreamFailure } from '../src/upstream/failure.ts'
import type { UpstreamEvent } from '../src/upstream/observe.ts'
import type { Credentials } from './credentials.ts'
import { authenticate, type Caller } from './stages/authenticate.ts'
import type { UpstreamCallRequest } from './stages/forward.ts'
import { type RateDeps, unrecorded, withinAccountLimits } from './stages/rate.ts'
import { requireBalance } from './stages/wallet-gate.ts'
import { brokenConnection, refusedByUpstream, tooLargeAnswer } from './upstream-error.ts'

const DEADLINE_MS = 30_000
const MAX_ANSWER_BYTES = 65_536

export interface CountTokensDeps extends RateDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  readonly openCountTokens: (request: UpstreamCallRequest) => Observable<UpstreamEvent>
}

interface Counted {
  readonly route: Route
  readonly body: Buffer
}

/** The route to ask, and the body with the model as it is called there. */
function prepare(catalog: Catalog, { known, exchange }: Caller): Counted {
  const value = parseJsonBody(exchange.body) as { model?: unknown } | null
  if (typeof value?.model !== 'string' || value.model === '')
    throw invalidField('model', 'a model id is expected')
  const model = catalog.resolve(value.model)
  if (model === null || !model.entry.callable)
    throw new Failure('model_not_found', `The model '${value.model.slice(0, 200)}' does not exist.`)
  if (!isModelAllowed(resolveAllowlist(catalog, known.key.allowedModels), model))
    throw new Failure('model_not_allowed', `This API key may not call the model '${model.id}'.`)
  const native = catalog.routes(model, 'messages').filter(({ channel }) => channel.protocol === 'messages')
  const route = nextRoute(native, [], null)
  if (route === null)
    throw new Failure('no_channel_available', `No channel counts tokens for the model '${model.id}'.`)
  const { start, end } = topLevelFields(exchange.body).fields.get('model')!
  const text = JSON.stringify(route.upstreamModel)
  return { route, body: spliced(exchange.body, [{ start, end, text }]) }
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
  const ask = (caller: Caller): Observable<Reply> => {
    const { route, body } = prepare(deps.catalog(), caller)
    const { requestId, header } = caller.exchange
    return answer(
      deps.openCountTokens({
        channel: route.channel,
        protocol: 'messages',
        upstreamModel: route.upstreamModel,
        stream: false,
        query: '',
        header,
        body,
        requestId,
        deadlineMs: DEADLINE_MS,
        traceparent: null,
        onReleased: () => {},
      }),
    )
  }
  const withinLimits = withinAccountLimits(deps, {
    refusalsOf: () => unrecorded,
    work: (caller: Caller) => of(caller).pipe(requireBalance(), concatMap(ask)),
  })
  return (exchange) => of(exchange).pipe(authenticate(deps.credentials), concatMap(withinLimits))
}
