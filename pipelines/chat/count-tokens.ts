/**
 * `POST /v1/messages/count_tokens`, `POST /v1/responses/input_tokens` and `POST /v1beta/models/{model}:countTokens`: passed
 * through where a native channel serves the model, else estimated where a channel serves the client's protocol. They run
 * nothing and cost nothing, so they leave no row.
 */
import { Buffer } from 'node:buffer'
import { catchError, from, map, Observable } from 'rxjs'
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
import {
  type ChatCall,
  type Dialect,
  PLAIN_OPTIONS,
  type ProtocolAdapter,
} from '../../src/protocols/dialect.ts'
import {
  countBody,
  generateContentCount,
  getCountedBody,
} from '../../src/protocols/generate-content/count.ts'
import { messagesDialect, messagesNative } from '../../src/protocols/messages/dialect.ts'
import type { ReaderName } from '../../src/protocols/registry.ts'
import { responsesDialect, responsesNative } from '../../src/protocols/responses/dialect.ts'
import { TOKENIZER } from '../../src/protocols/translate/token-count.ts'
import type { UpstreamFailure } from '../../src/upstream/client.ts'
import type { UpstreamEvent } from '../../src/upstream/observe.ts'
import { authenticate, type CallAccess } from '../calls/authenticate.ts'
import { Answered, calls, type Stage } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { jsonReply } from '../calls/replies.ts'
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
  /** Counts by a tokenizer, off the event loop. */
  readonly counting: LongBodyWork
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
  /** Returns the part of the client's body that has the conversation. */
  readonly getConversation: (call: ChatCall) => Buffer
  /** The field with the count in an answer to a client. */
  readonly countField: string
  /** Further fields of that answer. */
  readonly otherFields?: object
}

const encodeWith =
  (adapter: ProtocolAdapter): Counting['buildBody'] =>
  (call, upstreamModel) =>
    adapter.encodeRequest(call, {
      ...PLAIN_OPTIONS,
      upstreamModel,
    }).body

const getBody = ({ source }: ChatCall): Buffer => (source as { body: Buffer }).body

const COUNTINGS: Readonly<Record<CountingProtocol, Counting>> = {
  messages: {
    dialect: messagesDialect,
    reader: 'messages-count',
    buildBody: encodeWith(messagesNative),
    getConversation: getBody,
    countField: 'input_tokens',
  },
  responses: {
    dialect: responsesDialect,
    reader: 'responses',
    buildBody: encodeWith(responsesNative),
    getConversation: getBody,
    countField: 'input_tokens',
    otherFields: { object: 'response.input_tokens' },
  },
  'generate-content': {
    dialect: generateContentCount,
    reader: 'generate-content-count',
    buildBody: countBody,
    getConversation: getCountedBody,
    countField: 'totalTokens',
  },
}

/** Returns the client's request to the one channel in use; null where none counts. */
function buildCountRequest(
  protocol: CountingProtocol,
  { call, routes, request }: PricedCall,
): CountRequest | null {
  const counting = routes.filter(({ channel }) => findCountingAdapter(channel, protocol) !== null)
  const route = chooseNextRoute(counting, [], null)
  if (route === null) return null
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
        const body = isOwn ? withoutKeys(channel, answered) : JSON.stringify({ [fields.own]: counted })
        subscriber.next({ type: 'full', status, headers: [['content-type', 'application/json']], body })
        subscriber.complete()
      },
    })
  })
}

/** Returns an estimate, for a channel that serves the client's protocol and cannot count it. */
function estimate(
  { counting }: TokenCounting,
  protocol: CountingProtocol,
  { call, known, model, routes }: PricedCall,
): Observable<Reply> {
  if (!routes.some(({ channel }) => channel.serve.includes(protocol)))
    throw new Failure('no_channel_available', `No channel counts tokens for the model '${model.id}'.`)
  const { getConversation, countField, otherFields } = COUNTINGS[protocol]
  const input = { client: protocol, call, files: model.entry.estimate }
  return from(counting.workOnLongBody(known.account.id, 'count', input, getConversation(call))).pipe(
    map((tokens) => {
      const reply = jsonReply({ ...otherFields, [countField]: tokens })
      const warning = `${countField} (an estimate by the tokenizer ${TOKENIZER})`
      return { ...reply, headers: [...reply.headers, ['x-protocol-warning', warning]] }
    }),
  )
}

/** Answers with the count of the one channel in use, or with an estimate. */
const count =
  (deps: TokenCounting, protocol: CountingProtocol): Stage<PricedCall, never> =>
  (call) => {
    const request = buildCountRequest(protocol, call)
    if (request === null) return new Answered(call, estimate(deps, protocol, call))
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
