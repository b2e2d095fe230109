/** One call under way: its attempts, its answer, and its one settlement. Used by `stages/forward.ts`. */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Subscriber, Unsubscribable } from 'rxjs'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { FAILURES, Failure } from '../../../schemas/failure.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { DataSink, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { Ticket } from '../../../src/journal/journal.ts'
import type { EncodedRequest, EncodeOptions, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../src/protocols/registry.ts'
import type { CallTrace } from '../../../src/telemetry/call-trace.ts'
import type {
  ResponseHeaders,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
} from '../../../src/upstream/client.ts'
import type { AdmittedCall } from '../../stages/billing/precharge.ts'
import { endReservation } from '../../stages/billing/reserve.ts'
import type { ServedModel } from '../../stages/select-model.ts'
import { noticeOfBreak } from '../../stages/server-tools.ts'
import { type Answer, type AnswerReceiver, answerTo } from './answers.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { type CallFileMap, CallFiles, NO_FILES } from './call-files.ts'
import { CallRecord, type Ending } from './call-record.ts'
import { attemptMs, msLeft } from './call-time.ts'
import type { ForwardDeps } from './deps.ts'
import { RouteChoice } from './route-choice.ts'
import { afterwards, noteStored } from './stored-response.ts'
import { addedHeaders } from './translation-headers.ts'
import {
  type AttemptFailure,
  brokenConnection,
  compressedAnswer,
  isStale,
  masked,
  notJournaled,
  notStored,
} from './upstream-error.ts'
import { knowsUsageOption, rejectsUsageOption } from './usage-option.ts'
import { linksToFetch, writtenRequest } from './written-request.ts'

/** A translated stream always uses this framing. */
const EVENT_STREAM_QUERY = 'alt=sse'

export class ForwardedCall implements AnswerReceiver, UpstreamHandler, Unsubscribable {
  #answer: Answer | null = null
  /** Sink to which the client's bytes go directly; null when they go as events. */
  #client: DataSink | null = null
  readonly #deps: ForwardDeps
  #admitted: AdmittedCall
  readonly #subscriber: Subscriber<Reply>
  readonly #choice: RouteChoice
  readonly #record: CallRecord
  readonly #trace: CallTrace | null
  readonly #notes: AttemptNotes
  #ticket: Ticket | null = null
  #route: Route | null = null
  #adapter: ProtocolAdapter | null = null
  #upstream: UpstreamCall | null = null
  #files: CallFiles | null = null
  #status = 200
  #addedHeaders: HeaderList = []
  #lastFailure: AttemptFailure | null = null
  #leavesUsageOut = false
  #hasReplacedConnection = false
  #isOver = false

  constructor(deps: ForwardDeps, admitted: AdmittedCall, subscriber: Subscriber<Reply>) {
    this.#deps = deps
    this.#admitted = admitted
    this.#subscriber = subscriber
    this.#choice = new RouteChoice(deps, admitted)
    this.#record = new CallRecord(admitted, this.#choice.tried)
    this.#trace = deps.startTrace?.(admitted.request.header('traceparent')) ?? null
    this.#notes = new AttemptNotes(deps, { record: this.#record, choice: this.#choice, trace: this.#trace })
  }

  start(): void {
    this.#subscriber.add(this)
    this.#deps.onInFlight(1)
    this.#ticket = this.#deps.journal.admit(this.#record.admission, this.#admittedToJournal)
  }

  /** Tears down and settles. Runs on completion, error and abort alike, and after any exception since `start`. */
  unsubscribe(): void {
    if (!this.#isLeft()) this.#close()
  }

  /** Returns true when the client has left a stream that lacks only its usage: it is read further for that. */
  #isLeft(): boolean {
    const { lateUsage } = this.#deps
    if (this.#isOver || this.#record.ending.kind !== 'aborted') return false
    const answer = this.#answer?.left?.(this.giveUp)
    if (answer == null || !lateUsage.add(this)) return false
    this.#answer!.release?.()
    this.#answer = answer
    this.#upstream?.resume()
    return true
  }

  readonly giveUp = (): void => this.#close()

  readonly #admittedToJournal = (error: Error | null): void => {
    if (this.#isOver) return
    this.#guarded(() => (error === null ? this.#attempt(this.#choice.next()!) : this.#unjournaled(error)))
  }

  #unjournaled(error: Error): void {
    this.#ticket = null
    const message = 'The journal cannot be written.'
    this.#record.ending = { kind: 'failed', code: 'service_unavailable', message }
    this.#subscriber.error(notJournaled(error))
  }

  #attempt(route: Route, onFreshConnection = false): void {
    const { startedAt } = this.#admitted.request
    this.#record.forgetAttempt()
    this.#route = route
    const adapter = protocolAdapter(this.#admitted.protocol, route.protocol)
    const write = (files: CallFileMap) => this.#write(route, adapter, files, onFreshConnection)
    this.#then(linksToFetch(this.#deps, this.#admitted, route, adapter), (urls) => {
      if (urls.length === 0) return write(NO_FILES)
      this.#files ??= new CallFiles(this.#deps.fetchFiles)
      this.#files.fetch(urls, msLeft(startedAt, performance.now()), write, (error) => this.#fault(error))
    })
  }

  /** Continues with what is there or comes, unless the call has ended by then. */
  #then<T>(found: T | Promise<T>, goOn: (found: T) => void): void {
    if (!(found instanceof Promise)) return goOn(found)
    const unlessOver = (work: () => void) => void (this.#isOver || this.#guarded(work))
    found.then(
      (value) => unlessOver(() => goOn(value)),
      (error) => unlessOver(() => this.#fault(error)),
    )
  }

  #write(route: Route, adapter: ProtocolAdapter, fetched: CallFileMap, onFreshConnection: boolean): void {
    const { channel } = route
    const options: EncodeOptions = {
      upstreamModel: route.upstreamModel,
      outputCeiling: this.#choice.served.model.entry.max_output_tokens ?? null,
      outputLimitField: channel.output_limit_field,
      askUsage:
        !this.#leavesUsageOut && knowsUsageOption(channel) && !this.#deps.usageOptionRefusals.has(route),
      fetched,
      provider: channel.provider,
    }
    this.#then(writtenRequest(this.#deps, this.#admitted, route, adapter, options), (encoded) =>
      this.#send(route, adapter, encoded, onFreshConnection),
    )
  }

  #send(
    route: Route,
    adapter: ProtocolAdapter,
    { body, dropped }: EncodedRequest,
    onFreshConnection: boolean,
  ): void {
    const { request, call } = this.#admitted
    const { channel } = route
    this.#serveBy(this.#choice.served)
    this.#adapter = adapter
    const now = performance.now()
    const traceparent = this.#notes.began(route, dropped, now)
    this.#addedHeaders = addedHeaders(this.#admitted, route, adapter, dropped)
    this.#upstream = this.#deps.callUpstream(
      {
        channel,
        protocol: route.protocol as ChatProtocol,
        upstreamModel: route.upstreamModel,
        stream: call.stream,
        query: route.isTranslated ? EVENT_STREAM_QUERY : request.query,
        header: request.header,
        body,
        requestId: request.requestId,
        deadlineMs: attemptMs(channel, request.startedAt, now),
        onFreshConnection,
        traceparent,
      },
      this,
    )
  }

  #abortUpstream(): void {
    this.#answer?.release?.()
    const upstream = this.#upstream
    if (upstream === null) return
    this.#upstream = null
    upstream.abort()
    this.#record.isSent = upstream.sent
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#guarded(() => this.#head(status, headers, this.#adapter!))
  }

  onData(bytes: Uint8Array): void {
    try {
      this.#answer!.data(bytes as Buffer)
    } catch (error) {
      this.#fault(error)
    }
  }

  onEnd(): void {
    this.#guarded(() => this.#answer!.end())
  }

  onError(failure: UpstreamFailure): void {
    this.#guarded(() => this.#broken(failure))
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fault(error)
    }
  }

  /**
   * Refuses what cannot be translated. An exception in the gateway ends the call in which it occurred: otherwise its
   * client would wait for ever.
   */
  #fault(error: unknown): void {
    if (this.#isOver) throw error
    // The client has left: no error is sent.
    if (this.#subscriber.closed) return this.#close()
    const failure = error instanceof Failure ? error : null
    const last = this.#lastFailure
    // It could be written for an upstream before: how that one failed is the answer, unless another does better.
    if (failure !== null && last !== null) return this.#guarded(() => this.#goOn(last))
    const message = failure?.message ?? 'The gateway failed to handle the call.'
    const kind = failure === null ? 'failed' : 'refused'
    this.#record.ending = { kind, code: failure?.code ?? 'internal_error', message }
    this.#status = failure?.status ?? FAILURES.internal_error.status
    this.#subscriber.error(error)
  }

  #head(status: number, headers: ResponseHeaders, adapter: ProtocolAdapter): void {
    this.#status = status
    this.#notes.answered(status)
    const { call, request } = this.#admitted
    const waiting = { silence: this.#deps.silence, since: request.startedAt }
    this.#answer = answerTo(call, this, { status, headers, adapter, route: this.#route!, waiting })
    if (this.#answer === null) this.failed(compressedAnswer())
  }

  #broken(failure: UpstreamFailure): void {
    if (this.#answer !== null) this.#answer.broken(failure)
    else if (!this.#hasReplacedConnection && isStale(failure, this.#record.attempt!.beganAt))
      this.#replaceConnection(failure)
    else this.failed(brokenConnection(failure))
  }

  /**
   * Sends the request again on a new connection. This is no retry: no fault of the channel, and outside the budget.
   * Connections that idle together close together.
   */
  #replaceConnection(failure: UpstreamFailure): void {
    this.#hasReplacedConnection = true
    this.#abortUpstream()
    const { code, message } = brokenConnection(failure)
    this.#notes.ended(code, message)
    this.#notes.health(null)
    this.#attempt(this.#route!, true)
  }

  begin(headers: HeaderList): void {
    this.#files?.end()
    this.#admitted = this.#choice.admitted = this.#record.releaseBody()
    this.#subscriber.next({
      type: 'head',
      status: this.#status,
      headers: [...headers, ...this.#addedHeaders],
      flow: this.#upstream,
      direct: (sink) => {
        this.#client = sink
      },
    })
  }

  firstByte(): void {
    // The same request without the option succeeds: only this proves that the error was about the option.
    if (this.#leavesUsageOut) this.#deps.usageOptionRefusals.add(this.#route!)
    this.#record.firstByteAt = performance.now()
  }

  send(bytes: Uint8Array): void {
    if (this.#client !== null) this.#client.data(bytes)
    else this.#subscriber.next({ type: 'data', bytes })
  }

  isPaused = (): boolean => this.#upstream?.paused ?? false
  hideSecrets = (bytes: Buffer): Buffer => this.#record.hideSecrets(bytes)

  finishWhole(headers: HeaderList, body: Buffer): void {
    this.#record.firstByteAt = performance.now()
    this.#succeed({ type: 'full', status: this.#status, headers: [...headers, ...this.#addedHeaders], body })
  }

  /** Ends the reply once the journal has the settlement: a client that sees the end has paid, whatever is killed. */
  #succeed(whole?: Reply): void {
    this.#record.ending = { kind: 'success' }
    this.#notes.health(false)
    const stored = noteStored(this.#deps, this.#admitted, this.#route!, this.#answer!)
    this.#admitted.claim?.charge(whole)
    this.#close((error) => {
      if (error !== undefined) return this.#subscriber.error(notStored(error))
      afterwards(stored, () => {
        if (whole !== undefined) this.#subscriber.next(whole)
        this.#subscriber.complete()
      })
    })
  }

  finish(ending: Ending): void {
    if (ending.kind === 'success') return this.#succeed()
    this.#record.ending = ending
    const error = { code: 'upstream_timeout', message: '', ...ending }
    this.#notes.ended(error.code, error.message)
    const isTimeout = ending.kind === 'timeout'
    this.#notes.health(this.#record.blames({ isTimeout, isChannelFault: true }), error)
    const notice = noticeOfBreak(this.#admitted)
    if (notice !== null) this.send(notice)
    // The stream ends here all the same; the store of answers must not keep this one.
    const broken = new Failure('upstream_error', 'The upstream ended the stream before it was complete.')
    this.#close(() => this.#subscriber.error(broken))
  }

  failed(failure: AttemptFailure): void {
    this.#abortUpstream()
    if (this.#answer !== null) this.#record.metered = this.#answer.metered()
    this.#answer = null
    this.#notes.ended(failure.code, failure.message)
    // A channel that goes on with another key is not at fault.
    const isFault = this.#choice.keyRefused(this.#route!, failure) ? false : this.#record.blames(failure)
    this.#notes.health(isFault, { ...failure, message: failure.detail ?? failure.message })
    this.#goOn(failure)
  }

  /** Makes another attempt, or replies with the failure of the last one. */
  #goOn(failure: AttemptFailure): void {
    this.#lastFailure = failure
    if (this.#retry(failure)) return
    this.#record.ending = failure.isTimeout
      ? { kind: 'timeout', message: failure.message }
      : { kind: 'failed', code: failure.code, message: failure.message }
    this.#status = failure.error.status
    this.#subscriber.error(masked(failure.error, (text) => this.#record.mask(text)))
  }

  /** True when another attempt has begun. Only ever before the first byte. */
  #retry(failure: AttemptFailure): boolean {
    const route = this.#route!
    const isLeftOut = this.#leavesUsageOut || this.#deps.usageOptionRefusals.has(route)
    if (!isLeftOut && rejectsUsageOption(route, this.#admitted.call, failure)) {
      this.#leavesUsageOut = true
      this.#attempt(route)
      return true
    }
    const attempts = this.#record.attemptsCount - Number(this.#hasReplacedConnection)
    const other = this.#choice.afterFailure(failure, attempts)
    if (other === null) return false
    this.#leavesUsageOut = false
    this.#attempt(other)
    return true
  }

  /** Continues with another model in place of the one before. */
  #serveBy({ model, routes }: ServedModel): void {
    if (model === this.#admitted.model) return
    this.#admitted = { ...this.#admitted, model, routes }
    this.#record.admitted = this.#admitted
  }

  /** Settles and ends the call. `written` gets an error where the settlement may be lost with this machine. */
  #close(written?: (error?: Error) => void): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#files?.end()
    this.#deps.lateUsage.delete(this)
    this.#abortUpstream()
    this.#notes.endOpen()
    this.#choice.end()
    if (this.#answer !== null) this.#record.metered = this.#answer.metered()
    const { settlement, cost, oddities } = this.#record.settle(Date.now(), performance.now())
    endReservation(this.#deps, this.#admitted, cost)
    this.#deps.journal.settle(this.#ticket, settlement, written)
    this.#deps.onInFlight(-1)
    this.#deps.onSettled(settlement, oddities, this.#route?.upstreamModel ?? '')
    this.#trace?.ended(settlement, this.#admitted.request.path, this.#status)
  }
}
