/** One admitted call, and an upstream that does as the test says, event by event. */
import type { Observable, Subscription } from 'rxjs'
import { unwrapError } from '../../../pipelines/calls/errors.ts'
import { type Answered, CallEnds } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import type { UpstreamCallRequest } from '../../../pipelines/chat/forward/attempt-request.ts'
import type { Forwarding } from '../../../pipelines/chat/forward/deps.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import { SilenceWatch } from '../../../pipelines/chat/forward/stream-answer.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { type ChatProtocol, DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { parseCredits } from '../../../schemas/money.ts'
import type { Oddities } from '../../../src/core/call-log/call-detail.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { OutputRates } from '../../../src/core/routing/output-rates.ts'
import { RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { WalletView } from '../../../src/credentials/wallet.ts'
import type { HeaderList, Reply } from '../../../src/http/handler.ts'
import {
  type UpstreamCall,
  UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamHandler,
} from '../../../src/upstream/client.ts'
import { ResponseHeaders } from '../../../src/upstream/response/headers.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'
import { knownKey, walletView } from '../../support/known-key.ts'
import { readAtPath } from '../../support/read-at-path.ts'
import { workHere } from '../../support/work-here.ts'

export const MODEL = 'model-a'
export const ESTIMATE = parseCredits('5')
const SILENCE = new SilenceWatch()
const USUAL_TIME = { totalMs: DEFAULT_CHAT_SECONDS * 1000, idleMs: null }
/** Settles at once whatever the client leaves. */
const NOT_LATE = new LateUsage()
NOT_LATE.close()

/** The model that serves in place of `MODEL` where a test configures it; twice its price. */
export const STAND_IN = 'model-b'
const PRICING = { unit: '1M_tokens', input: '1000000', output: '2000000' }

const catalogOf = (
  channels: readonly string[],
  retries: number,
  protocol: ChatProtocol,
  { modelFields = {}, channelFields = {}, standIns = [] }: ForwardOptions,
) =>
  createCatalog(
    configFile.parse({
      retries,
      models: [
        {
          id: MODEL,
          pricing: PRICING,
          ...modelFields,
          ...(standIns.length > 0 && { fallbacks: [STAND_IN] }),
        },
        { id: STAND_IN, pricing: { ...PRICING, input: '2000000', output: '4000000' } },
      ],
      channels: [...channels, ...standIns].map((id, index) => ({
        id,
        protocol,
        base_url: `http://host-of-${id}:1/v1`,
        api_key: `key-of-${id}`,
        headers: { 'x-project': `Token project-of-${id}` },
        models: { [index < channels.length ? MODEL : STAND_IN]: `upstream-name-of-${id}` },
        priority: index,
        ...channelFields[id],
      })),
    }),
  )
/** What one attempt brings, as the upstream client would tell it. */
export class ScriptedUpstream implements UpstreamCall {
  readonly request: UpstreamCallRequest
  readonly #handler: UpstreamHandler
  isLeft = false
  /** False while the connection is still being made. */
  isSent = true
  #hasHead = false
  #isOver = false

  constructor(request: UpstreamCallRequest, handler: UpstreamHandler) {
    this.request = request
    this.#handler = handler
  }

  get sent(): boolean {
    return this.isSent
  }

  readonly paused = false

  pause(): void {}

  resume(): void {}

  abort(): void {
    this.isLeft = true
  }

  /** Once: the upstream client tells no other. */
  head(status = 200, headers: Readonly<Record<string, string>> = {}): void {
    if (this.#hasHead) return
    this.#hasHead = true
    const all = { 'content-type': 'text/event-stream', ...headers }
    const text = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.#tell(() => this.#handler.onHead(status, new ResponseHeaders(`\r\n${text.join('')}`)))
  }

  data(text: string | Buffer): void {
    this.#tell(() => this.#handler.onData(Buffer.from(text)))
  }

  end(): void {
    this.#tellLast(() => this.#handler.onEnd())
  }

  /** Answers with a stream of this text, whole and at once. */
  stream(text: string): void {
    this.head()
    this.data(text)
    this.end()
  }

  /** Streams a word and this usage. */
  succeed(prompt = 1, completion = 1): void {
    this.stream(word('fine') + FINISH + usageChunk(prompt, completion) + DONE)
  }

  /** Answers with JSON, in one piece. */
  answer(body: object, status = 200, headers: Readonly<Record<string, string>> = {}): void {
    this.head(status, { 'content-type': 'application/json', ...headers })
    this.data(JSON.stringify(body))
    this.end()
  }

  refuse(status: number, message = 'no', headers: Readonly<Record<string, string>> = {}): void {
    this.answer({ error: { message } }, status, headers)
  }

  fail(kind: UpstreamFailureKind, facts: { headReceived?: boolean; reused?: boolean } = {}): void {
    const { headReceived = false, reused = false } = facts
    this.failWith(new UpstreamFailure(kind, 'as the test says', { sent: true, headReceived, reused }))
  }

  failWith(failure: UpstreamFailure): void {
    this.#tellLast(() => this.#handler.onError(failure))
  }

  /** A call that is over or was aborted gets no more events. */
  #tell(event: () => void): void {
    if (!this.#isOver && !this.isLeft) event()
  }

  #tellLast(event: () => void): void {
    this.#tell(() => {
      this.#isOver = true
      event()
    })
  }
}

export interface ClientCall {
  readonly protocol: ChatProtocol
  readonly path: string
  readonly query: string
  readonly body: Readonly<Record<string, unknown>>
}

/** A request of a protocol that says `text`, for a stream or not, with further fields. */
export function clientCall(
  protocol: ChatProtocol,
  text: string,
  stream: boolean,
  more: object = {},
): ClientCall {
  const messages = [{ role: 'user', content: text }]
  const call = (path: string, body: object): ClientCall => ({
    protocol,
    path,
    query: '',
    body: { model: MODEL, stream, ...body, ...more },
  })
  switch (protocol) {
    case 'chat-completions':
      return call('/v1/chat/completions', { messages })
    case 'messages':
      return call('/v1/messages', { max_tokens: 9000, messages })
    case 'responses':
      return call('/v1/responses', { input: messages })
    case 'generate-content': {
      const path = `/v1beta/models/${MODEL}:${stream ? 'streamGenerateContent' : 'generateContent'}`
      const contents = [{ role: 'user', parts: [{ text }] }]
      return { protocol, path, query: 'alt=sse', body: { contents, ...more } }
    }
  }
}

export interface ForwardOptions {
  /** In place of a stream of chat-completions with `request`. */
  readonly client?: ClientCall
  /** What its channels speak. */
  readonly upstream?: ChatProtocol
  readonly channels?: readonly string[]
  readonly retries?: number
  readonly random?: () => number
  /** Further fields of the model, and of channels by id. */
  readonly modelFields?: object
  readonly channelFields?: Readonly<Record<string, object>>
  /** Channels of the model that serves when those of the requested one have failed. */
  readonly standIns?: readonly string[]
  readonly request?: Readonly<Record<string, unknown>>
  /** In place of a journal that always writes. */
  readonly admit?: Forwarding['journal']['admit']
  /** Takes the callback for a written settlement; called at once where this is left out. */
  readonly onSettle?: (written: (error?: Error) => void) => void
  /** In place of forwarding alone. */
  readonly answer?: (deps: Forwarding, admitted: AdmittedCall) => Observable<Reply>
  readonly callUpstream?: Forwarding['callUpstream']
  readonly fetchFiles?: Forwarding['fetchFiles']
  readonly usageOptionRefusals?: UsageOptionRefusals
  /** In place of one that looks every second. */
  readonly silence?: SilenceWatch
  readonly keepAliveSeconds?: number
  readonly outputRates?: OutputRates
  /** In place of one that waits for nothing. */
  readonly lateUsage?: LateUsage
  /** Shared by calls of one gateway. */
  readonly health?: ChannelHealth
  readonly retryBudget?: RetryBudget
  /** What the spend cap of its key leaves; the call's estimate is reserved in it. */
  readonly cap?: WalletView
  /** How long ago the request came. */
  readonly ageMs?: number
  /** In place of the usual facts of its admission. */
  readonly admitted?: Partial<AdmittedCall>
  /** Called with each reply event, before it is noted. */
  readonly onReply?: (reply: Reply, call: RunningCall) => void
}

/** A forwarded call in the middle of its way, and all that can be seen of it. */
export class RunningCall {
  readonly attempts: ScriptedUpstream[] = []
  readonly replies: Reply[] = []
  readonly settlements: Settlement[] = []
  readonly oddities: Oddities[] = []
  /** What stays reserved in the cap. */
  readonly leftReserved: bigint[] = []
  readonly view = walletView('1000')
  error: unknown = null
  errorHeaders: HeaderList = []
  isComplete = false
  readonly health: ChannelHealth
  inFlight = 0
  #subscription: Subscription | null = null

  constructor(options: ForwardOptions = {}) {
    const { channels = ['only'], retries = 2, request = {} } = options
    const catalog = catalogOf(channels, retries, options.upstream ?? 'chat-completions', options)
    const client = options.client ?? clientCall('chat-completions', 'hi', true, request)
    this.health = options.health ?? new ChannelHealth()
    const deps: Forwarding = {
      workOnLongBody: workHere,
      journal: {
        admit: options.admit ?? this.#write,
        settle: (_ticket, settlement, written) => {
          this.settlements.push(settlement)
          if (written === undefined) return
          if (options.onSettle === undefined) written()
          else options.onSettle(written)
        },
      },
      callUpstream: options.callUpstream ?? this.#call,
      retries: () => retries,
      ...(options.random !== undefined && { random: options.random }),
      onSettled: (_settlement, oddities) => void this.oddities.push(oddities),
      onInFlight: (change) => {
        this.inFlight += change
      },
      startTrace: null,
      fetchFiles: options.fetchFiles ?? (async () => new Map()),
      retryBudget: options.retryBudget ?? new RetryBudget(),
      health: this.health,
      config: () => ({ ...catalog.config, keep_alive_seconds: options.keepAliveSeconds ?? null }),
      outputRates: options.outputRates ?? new OutputRates(),
      silence: options.silence ?? SILENCE,
      lateUsage: options.lateUsage ?? NOT_LATE,
      storeResponse: async () => {},
      usageOptionRefusals: options.usageOptionRefusals ?? new UsageOptionRefusals(),
      caps: {
        reserveSpend: async () => null,
        shrink: async (_, cost) => void this.leftReserved.push(cost),
        reserveWallet: async () => true,
        release: async () => {},
      },
      isAway: () => false,
      onReservationFault(error) {
        throw error
      },
    }
    this.view.admit(ESTIMATE, true)
    options.cap?.admit(ESTIMATE, true)
    const admitted = this.#admitted(catalog, client, options)
    const replies = options.answer?.(deps, admitted) ?? (forward(deps)(admitted) as Answered).replies
    this.#subscription = replies.subscribe({
      next: (reply) => {
        options.onReply?.(reply, this)
        this.replies.push(reply.type === 'data' ? { ...reply, bytes: Buffer.from(reply.bytes) } : reply)
      },
      error: (thrown: unknown) => {
        const { error, headers } = unwrapError(thrown)
        this.error = error
        this.errorHeaders = headers
      },
      complete: () => {
        this.isComplete = true
      },
    })
  }

  get attempt(): ScriptedUpstream {
    const last = this.attempts.at(-1)
    if (last === undefined) throw new Error('the upstream was not called')
    return last
  }

  /** The bytes that went out. */
  get sent(): string {
    return this.replies
      .map((reply) => (reply.type === 'head' ? '' : String(reply.type === 'full' ? reply.body : reply.bytes)))
      .join('')
  }

  get settlement(): Settlement {
    if (this.settlements.length !== 1) throw new Error(`${this.settlements.length} settlements`)
    return this.settlements[0]!
  }

  /** The client goes away. */
  abort(): void {
    this.#subscription?.unsubscribe()
  }

  readonly #write: Forwarding['journal']['admit'] = ({ request_id }, written) => {
    written(null)
    return { requestId: request_id }
  }

  readonly #call: Forwarding['callUpstream'] = (request, handler) => {
    const attempt = new ScriptedUpstream(request, handler)
    this.attempts.push(attempt)
    return attempt
  }

  #admitted(
    catalog: ReturnType<typeof catalogOf>,
    { protocol, path, query, body: fields }: ClientCall,
    { cap, ageMs = 0, admitted }: ForwardOptions,
  ): AdmittedCall {
    const body = Buffer.from(JSON.stringify(fields))
    const model = catalog.resolve(MODEL)!
    return {
      ends: new CallEnds(),
      request: gatewayRequest({
        requestId: 'req_test',
        method: 'POST',
        path,
        query,
        body,
        submittedAt: Date.now(),
        startedAt: performance.now() - ageMs,
      }),
      known: knownKey({ view: this.view, cap: cap ?? null }),
      protocol,
      ...{ pin: null, sessionId: null, time: USUAL_TIME, catalog, others: [], ...admitted },
      call: readAtPath(path, query, body),
      requested: model,
      model,
      routes: catalog.routes(model, protocol),
      fallbacks: catalog
        .fallbacks(model)
        .map((other) => ({ model: other, routes: catalog.routes(other, protocol) })),
      estimate: ESTIMATE,
      estimateMode: 'specified',
      isShared: false,
    }
  }
}

export const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
export const word = (content: string): string => event({ choices: [{ index: 0, delta: { content } }] })
export const FINISH = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
export const usageChunk = (prompt: number, completion: number): string =>
  event({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion } })
export const DONE = 'data: [DONE]\n\n'
