/**
 * `POST /v1/messages/count_tokens`, `POST /v1/responses/input_tokens` and `POST /v1beta/models/{model}:countTokens`: passed
 * through where a native channel serves the model. They run nothing and cost nothing, so they leave no row.
 */
import { Buffer } from 'node:buffer'
import { catchError, Observable } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import type { CountingAdapter, CountingProtocol } from '../../src/channels/channel.ts'
import { findCountingAdapter } from '../../src/channels/chat/registry.ts'
import { withoutKeys } from '../../src/core/call-log/key-mask.ts'
import { mask } from '../../src/core/call-log/redact.ts'
import { chooseNextRoute } from '../../src/core/routing/order.ts'
import { listUpstreamTexts } from '../../src/core/routing/upstream-texts.ts'
import type { Handler, Reply } from '../../src/http/handler.ts'
import { answerFields } from '../../src/protocols/answer/content.ts'
import type { LongBodyWork } from '../../src/protocols/body-work.ts'
import type { ChatCall, Dialect, ProtocolAdapter } from '../../src/protocols/dialect.ts'
import { countBody, generateContentCount } from '../../src/protocols/generate-content/count.ts'
import { messagesDialect, messagesNative } from '../../src/protocols/messages/dialect.ts'
import type { ReaderName } from '../../src/protocols/registry.ts'
import { responsesDialect, responsesNative } from '../../src/protocols/responses/dialect.ts'
import type { UpstreamFailure } from '../../src/upstream/client.ts'
import type { UpstreamEvent } from '../../src/upstream/observe.ts'
import { authenticate, type CallAccess } from '../calls/authenticate.ts'
import { Answered, calls, type Stage } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import {
  type AttemptFailure,
  maskError,
  readUpstreamRefusal,
  toConnectionFailure,
  tooLargeAnswer,
  unusableAnswer,
} from '../calls/upstream-error.ts'
import type { UpstreamCallRequest } from './forward/attempt-request.ts'
import { readCall } from './read-call.ts'
import { checkLinks, type LinkChecker, type PricedCall, selectModel } from './select-model.ts'
import { followState, type StoredState } from './stored/state.ts'

const DEADLINE_MS = 30_000
const MAX_ANSWER_BYTES = 65_536

export interface TokenCounting {
  readonly access: CallAccess
  readonly bodies: LongBodyWork
  readonly links: LinkChecker
  readonly stored: StoredState
  readonly openCountTokens: (request: CountRequest) => Observable<UpstreamEvent>
}

interface CountRequest extends UpstreamCallRequest {
  readonly protocol: CountingProtocol
  readonly adapter: CountingAdapter
}

/** Token counting in one protocol. */
interface Counting {
  readonly dialect: Dialect
  readonly reader: ReaderName
  /** Returns the client's body with the upstream's name of the model. */
  readonly buildBody: (call: ChatCall, upstreamModel: string) => Buffer
  /** The field with the count in an answer to a client. */
  readonly countField: string
}

const encodeWith =
  (adapter: ProtocolAdapter): Counting['buildBody'] =>
  (call, upstreamModel) =>
    adapter.encodeRequest(call, {
      upstreamModel,
      outputCeiling: null,
      outputLimitField: 'max_tokens',
      askUsage: false,
      serverTools: [],
      fetched: new Map(),
    }).body

const COUNTINGS: Readonly<Record<CountingProtocol, Counting>> = {
  messages: {
    dialect: messagesDialect,
    reader: 'messages',
    buildBody: encodeWith(messagesNative),
    countField: 'input_tokens',
  },
  responses: {
    dialect: responsesDialect,
    reader: 'responses',
    buildBody: encodeWith(responsesNative),
    countField: 'input_tokens',
  },
  'generate-content': {
    dialect: generateContentCount,
    reader: 'generate-content-count',
    buildBody: countBody,
    countField: 'totalTokens',
  },
}

/** Returns the client's request to the one channel in use. */
function buildCountRequest(
  protocol: CountingProtocol,
  { call, model, routes, request }: PricedCall,
): CountRequest {
  const counting = routes.filter(({ channel }) => findCountingAdapter(channel, protocol) !== null)
  const route = chooseNextRoute(counting, [], null)
  if (route === null)
    throw new Failure('no_channel_available', `No channel counts tokens for the model '${model.id}'.`)
  const { channel, upstreamModel } = route
  return {
    adapter: findCountingAdapter(channel, protocol)!,
    channel,
    protocol,
    upstreamModel,
    stream: false,
    query: '',
    header: request.header,
    body: COUNTINGS[protocol].buildBody(call, upstreamModel),
    requestId: request.requestId,
    deadlineMs: DEADLINE_MS,
    onFreshConnection: false,
    traceparent: null,
  }
}

/**
 * Sends the request. Counting twice has no effect: when a kept connection proves closed, the request is sent again on
 * a new one.
 */
function sendCount(
  open: TokenCounting['openCountTokens'],
  countRequest: CountRequest,
): Observable<UpstreamEvent> {
  return open(countRequest).pipe(
    catchError((failure: UpstreamFailure) => {
      if (!failure.mayBeStale) throw failure
      return open({ ...countRequest, onFreshConnection: true })
    }),
  )
}

/**
 * Returns the upstream's answer in one piece, as it is where it has the count in the protocol's own field, or its
 * refusal in the protocol's shape, masked for the client. An answer without the count is a failure.
 */
function answer(
  { channel, protocol }: CountRequest,
  events: Observable<UpstreamEvent>,
  fields: { readonly own: string; readonly upstream: string },
  mask: (text: string) => string,
): Observable<Reply> {
  return new Observable((subscriber) => {
    const fail = ({ error }: AttemptFailure) => subscriber.error(maskError(error, mask))
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
        if (length > MAX_ANSWER_BYTES) fail(tooLargeAnswer())
        else pieces.push(Buffer.from(event.bytes))
      },
      error: (failure: UpstreamFailure) => fail(toConnectionFailure(failure)),
      complete() {
        const answered = Buffer.concat(pieces, length)
        if (status !== 200) return fail(readUpstreamRefusal(channel, status, answered, retryAfter))
        const counted = answerFields(answered)?.[fields.upstream]
        if (typeof counted !== 'number')
          return fail(unusableAnswer(answered, { channel, protocol, isTranslated: false }))
        const isOwn = fields.upstream === fields.own
        const body = isOwn
          ? withoutKeys(channel, answered)
          : Buffer.from(JSON.stringify({ [fields.own]: counted }))
        subscriber.next({ type: 'full', status, headers: [['content-type', 'application/json']], body })
        subscriber.complete()
      },
    })
  })
}

/** Answers with the count of the one channel in use. */
const count =
  (deps: TokenCounting, protocol: CountingProtocol): Stage<PricedCall, never> =>
  (call) => {
    const request = buildCountRequest(protocol, call)
    const { names, secrets } = listUpstreamTexts([request], call.model.id)
    const events = sendCount(deps.openCountTokens, request)
    const maskText = (text: string) => mask(text, names, secrets)
    const fields = { own: COUNTINGS[protocol].countField, upstream: request.adapter.countField }
    return new Answered(call, answer(request, events, fields, maskText))
  }

export const countTokens = (deps: TokenCounting, protocol: CountingProtocol): Handler =>
  calls(authenticate(deps.access))
    .then(rateLimit(deps.access))
    .then(readCall(deps.bodies, COUNTINGS[protocol].dialect, COUNTINGS[protocol].reader))
    .then(selectModel(deps.access.catalog))
    .then(followState(deps.stored))
    .then(checkLinks(deps.links))
    .then(count(deps, protocol))
    .toHandler()
