/**
 * From an admitted call to its reply: written to the journal, sent to one channel after another until one answers,
 * relayed, and settled exactly once, whatever happens. Source: design, "A streaming chat call"; decisions, "Chat".
 */
import { concatMap, Observable, type OperatorFunction, type Subscriber, type Subscription } from 'rxjs'
import type { ChannelEntry } from '../../schemas/catalog.ts'
import type { Settlement } from '../../schemas/event.ts'
import { FAILURES, Failure } from '../../schemas/failure.ts'
import type { Credits } from '../../schemas/money.ts'
import type { Route } from '../../src/core/catalog.ts'
import { nextRoute } from '../../src/core/routing.ts'
import type { HeaderList, Reply } from '../../src/http/exchange.ts'
import type { Journal, Ticket } from '../../src/journal/journal.ts'
import { type RequestSource, wireBody } from '../../src/protocols/chat-completions.ts'
import type { CallTrace } from '../../src/telemetry/call-trace.ts'
import type { UpstreamFailure } from '../../src/upstream/failure.ts'
import type { UpstreamEvent } from '../../src/upstream/observe.ts'
import { type Answer, type AnsweredCall, ErrorAnswer, StreamAnswer, WholeAnswer } from '../answers.ts'
import { CallRecord, CHAT_PROTOCOL, type Ending } from '../call-record.ts'
import { type AttemptFailure, brokenConnection, compressedAnswer } from '../upstream-error.ts'
import type { AdmittedCall } from './precharge.ts'

/** Specification, "Timeouts": the whole of a chat call, streaming included. */
export const CHAT_DEADLINE_MS = 180_000
const NO_BYTES = Buffer.alloc(0)
const NO_SOURCE: RequestSource = { body: NO_BYTES, fields: new Map(), open: 0, request: {} }
const EVENT_STREAM = 'text/event-stream'
const IDENTITY = 'identity'

export interface UpstreamCallRequest {
  readonly channel: ChannelEntry
  readonly body: Buffer
  readonly requestId: string
  readonly deadlineMs: number
  /** W3C trace context for the upstream; null where no traces are exported. */
  readonly traceparent: string | null
}

export interface ForwardDeps {
  readonly journal: Pick<Journal, 'admit' | 'settle'>
  /** One cold Observable a call; unsubscribing closes the upstream connection. */
  readonly openUpstream: (request: UpstreamCallRequest) => Observable<UpstreamEvent>
  /** Tries after the first. */
  readonly retries: () => number
  /** Told of each settlement, for metrics and traces. Must not throw. */
  readonly onSettled: (settlement: Settlement) => void
  /** Told when a call is admitted, and when it is over. */
  readonly onInFlight: (change: 1 | -1) => void
  /** Null where no traces are exported. */
  readonly startTrace: ((traceparent: string) => CallTrace) | null
  /** Channels whose upstream rejects `stream_options`, learnt as calls fail. */
  readonly withoutUsageOption: Set<string>
}

export function forward(deps: ForwardDeps): OperatorFunction<AdmittedCall, Reply> {
  return concatMap(
    (admitted) =>
      new Observable<Reply>((subscriber) => {
        new ForwardedCall(deps, admitted, subscriber).start()
      }),
  )
}

class ForwardedCall implements AnsweredCall {
  readonly #deps: ForwardDeps
  #admitted: AdmittedCall
  readonly #subscriber: Subscriber<Reply>
  readonly #record: CallRecord
  #ticket: Ticket | null = null
  #route: Route | null = null
  #answer: Answer | null = null
  #upstream: Subscription | null = null
  #flow: Extract<UpstreamEvent, { type: 'head' }>['flow'] | null = null
  #status = 200
  #attemptAt = 0
  /** The route's upstream has refused the usage option in this call. */
  #leavesUsageOut = false
  #isOver = false
  readonly #trace: CallTrace | null

  constructor(deps: ForwardDeps, admitted: AdmittedCall, subscriber: Subscriber<Reply>) {
    this.#deps = deps
    this.#admitted = admitted
    this.#subscriber = subscriber
    this.#record = new CallRecord(admitted)
    this.#trace = deps.startTrace?.(admitted.exchange.header('traceparent')) ?? null
  }

  start(): void {
    const { exchange, known, model, call, estimate } = this.#admitted
    // The teardown settles. It runs on completion, error and abort alike, and whatever throws from here on.
    this.#subscriber.add(() => this.#close())
    this.#deps.onInFlight(1)
    this.#ticket = this.#deps.journal.admit(
      {
        request_id: exchange.requestId,
        account_id: known.account.id,
        key_id: known.key.id,
        model: model.id,
        protocol: CHAT_PROTOCOL,
        stream: call.stream,
        submitted_at: exchange.submittedAt,
        estimate: estimate.toString(),
      },
      (error) => this.#guarded(() => this.#admittedToJournal(error)),
    )
  }

  #admittedToJournal(error: Error | null): void {
    if (this.#isOver) return
    if (error === null) return this.#tryNext()
    this.#ticket = null
    this.#record.ending = {
      kind: 'failed',
      code: 'service_unavailable',
      message: 'The journal cannot be written.',
    }
    this.#subscriber.error(
      new Failure(
        'service_unavailable',
        'The service cannot take calls at the moment. Try again in a minute.',
        {
          internal: `journal: ${error.message}`,
        },
      ),
    )
  }

  #tryNext(): void {
    const route = nextRoute(this.#admitted.routes, this.#record.tried)
    if (route === null) throw new Error('no route left: the caller asked before it looked')
    this.#record.tried.push(route)
    this.#attempt(route)
  }

  #attempt(route: Route): void {
    const { exchange, call, model } = this.#admitted
    const { channel } = route
    this.#route = route
    this.#record.channelId = channel.id
    this.#record.attemptsCount++
    this.#record.isSent = true
    this.#attemptAt = performance.now()
    const body = wireBody(call, {
      upstreamModel: route.upstreamModel,
      outputCeiling: model.entry.max_output_tokens ?? null,
      outputLimitField: channel.output_limit_field,
      askUsage: !this.#leavesUsageOut && !this.#deps.withoutUsageOption.has(channel.id),
    })
    const left = CHAT_DEADLINE_MS - (this.#attemptAt - exchange.startedAt)
    const deadlineMs = Math.max(1, Math.min(left, channel.timeout_seconds * 1000))
    this.#upstream = this.#deps
      .openUpstream({
        channel,
        body,
        requestId: exchange.requestId,
        deadlineMs,
        traceparent: this.#trace?.attempt(channel.id) ?? null,
      })
      .subscribe({
        next: (event) =>
          this.#guarded(() =>
            event.type === 'data' ? this.#answer!.data(event.bytes as Buffer) : this.#head(event),
          ),
        error: (failure: UpstreamFailure) => this.#guarded(() => this.#broken(failure)),
        complete: () => this.#guarded(() => this.#answer!.end()),
      })
  }

  /** A fault of the gateway's own ends the call it befell: left alone, its client would wait for ever. */
  #guarded(step: () => void): void {
    try {
      step()
    } catch (error) {
      if (this.#isOver) throw error
      this.#record.ending = {
        kind: 'failed',
        code: 'internal_error',
        message: 'The gateway failed to handle the call.',
      }
      this.#status = FAILURES.internal_error.status
      this.#subscriber.error(error)
    }
  }

  #head(head: Extract<UpstreamEvent, { type: 'head' }>): void {
    this.#flow = head.flow
    this.#status = head.status
    this.#trace?.answered(head.status)
    const contentType = head.headers.get('content-type') ?? 'application/json'
    const encoding = head.headers.get('content-encoding') ?? IDENTITY
    const { call } = this.#admitted
    const isRefused = head.status >= 300 || head.status < 200
    // Only now is it certain: a refusal may name the option because the client's own words did.
    if (this.#leavesUsageOut && !isRefused) this.#deps.withoutUsageOption.add(this.#route!.channel.id)
    if (isRefused) this.#answer = new ErrorAnswer(this, head.status, head.headers.get('retry-after') ?? null)
    else if (encoding.toLowerCase() !== IDENTITY) this.failed(compressedAnswer())
    else if (call.stream && contentType.toLowerCase().includes(EVENT_STREAM))
      this.#answer = new StreamAnswer(this, contentType, !call.wantsUsage)
    else this.#answer = new WholeAnswer(this, contentType)
  }

  #broken(failure: UpstreamFailure): void {
    if (this.#answer !== null) this.#answer.broken(failure)
    else this.failed(brokenConnection(failure), failure.reused)
  }

  begin(headers: HeaderList): void {
    this.#record.firstByteAt = performance.now()
    this.#forgetRequest()
    this.#subscriber.next({ type: 'head', status: this.#status, headers, flow: this.#flow })
  }

  /** No other attempt follows: a stream of minutes need not hold a prompt of megabytes. */
  #forgetRequest(): void {
    const { exchange, call } = this.#admitted
    this.#admitted = {
      ...this.#admitted,
      exchange: { ...exchange, body: NO_BYTES },
      call: { ...call, source: NO_SOURCE },
    }
    this.#record.admitted = this.#admitted
  }

  send(bytes: Uint8Array): void {
    this.#subscriber.next({ type: 'data', bytes })
  }

  sendWhole(headers: HeaderList, body: Buffer): void {
    this.#record.firstByteAt = performance.now()
    this.#subscriber.next({ type: 'full', status: this.#status, headers, body })
  }

  finish(ending: Ending): void {
    this.#record.ending = ending
    if (ending.kind === 'failed') this.#noteAttempt(ending.code, ending.message)
    if (ending.kind === 'timeout') this.#noteAttempt('upstream_timeout', ending.message)
    this.#subscriber.complete()
  }

  failed(failure: AttemptFailure, wasStale = false): void {
    this.#upstream?.unsubscribe()
    this.#answer = null
    this.#noteAttempt(failure.code, failure.message)
    if (this.#retry(failure, wasStale)) return
    this.#record.ending = failure.isTimeout
      ? { kind: 'timeout', message: failure.message }
      : { kind: 'failed', code: failure.code, message: failure.message }
    this.#status = failure.error.status
    this.#subscriber.error(failure.error)
  }

  /** True when another attempt has begun. Only ever before the first byte. */
  #retry(failure: AttemptFailure, wasStale: boolean): boolean {
    const route = this.#route!
    if (this.#rejectsUsageOption(failure)) {
      this.#leavesUsageOut = true
      this.#attempt(route)
      return true
    }
    if (!failure.isRetryable || this.#record.attemptsCount > this.#deps.retries()) return false
    const next = nextRoute(this.#admitted.routes, this.#record.tried)
    if (next !== null) {
      this.#record.tried.push(next)
      this.#leavesUsageOut = false
      this.#attempt(next)
      return true
    }
    // The upstream closed a kept connection just as the call went out on it: a fresh one is tried, once.
    if (!wasStale || this.#record.attemptsCount > 1) return false
    this.#attempt(route)
    return true
  }

  /** Some providers refuse `stream_options`; they are asked again without it (failures, row 34). */
  #rejectsUsageOption(failure: AttemptFailure): boolean {
    const isKnown = this.#leavesUsageOut || this.#deps.withoutUsageOption.has(this.#route!.channel.id)
    const { stream, source } = this.#admitted.call
    return (
      !isKnown &&
      stream &&
      // What else the client wants of the stream is its own to answer for.
      Object.keys(source.request.stream_options ?? {}).every((option) => option === 'include_usage') &&
      failure.code === 'invalid_request' &&
      /stream_options/.test(failure.message)
    )
  }

  /** `code` and `message` are null for an attempt that did not fail. */
  #noteAttempt(code: string | null, message: string | null): void {
    this.#trace?.attemptEnded(code)
    const latency = performance.now() - this.#attemptAt
    this.#record.attempts.push({
      seq: this.#record.attemptsCount,
      created_at: new Date(Date.now() - latency).toISOString(),
      latency_ms: Math.round(latency),
      error_code: code,
      error_message: message === null ? null : this.#record.redact(message),
    })
  }

  /** The attempt that answered, or whose client left. Where it is the only one, the row itself says all of it. */
  #endOpenAttempt(): void {
    const { attempts, attemptsCount } = this.#record
    if (attempts.length === attemptsCount) return
    if (attemptsCount > 1) this.#noteAttempt(null, null)
    else this.#trace?.attemptEnded(null)
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#upstream?.unsubscribe()
    this.#endOpenAttempt()
    if (this.#answer !== null) this.#record.metered = this.#answer.metered()
    const { settlement, cost } = this.#record.settle(Date.now(), performance.now())
    this.#endReservation(cost)
    this.#deps.journal.settle(this.#ticket, settlement)
    this.#deps.onInFlight(-1)
    this.#deps.onSettled(settlement)
    this.#trace?.ended(settlement, this.#admitted.exchange.path, this.#status)
  }

  #endReservation(cost: Credits): void {
    this.#admitted.known.view.end(this.#admitted.estimate, cost)
  }
}
