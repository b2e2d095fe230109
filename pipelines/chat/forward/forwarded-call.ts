/** One call under way: its attempts, its answer, and its one settlement. Used by `stages/forward.ts`. */
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Subscriber, Unsubscribable } from 'rxjs'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { FAILURES, Failure } from '../../../schemas/failure.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { DataSink, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { Ticket } from '../../../src/journal/journal.ts'
import type { ProtocolAdapter } from '../../../src/protocols/dialect.ts'
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
import { FOR_USAGE, LeftAnswer, type LeftBounds, type LeftCall, toItsLimit } from './late-usage.ts'
import { RouteChoice } from './route-choice.ts'
import { afterwards, noteStored } from './stored-response.ts'
import { addedHeaders } from './translation-headers.ts'
import {
  type AttemptFailure,
  brokenConnection,
  compressedAnswer,
  INCOMPLETE,
  isStale,
  masked,
  notJournaled,
  notStored,
} from './upstream-error.ts'
import { knowsUsageOption, rejectsUsageOption } from './usage-option.ts'

const MS_PER_SECOND = 1000
/** A translated stream always uses this framing. */
const EVENT_STREAM_QUERY = 'alt=sse'

export class ForwardedCall implements AnswerReceiver, LeftCall, UpstreamHandler, Unsubscribable {
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
  /** The settlement is made. */
  #isSettled = false
  /** How far the upstream is read though the client has left; null while the client is there. */
  #left: LeftBounds | null = null
  /** The client has left, with all that the upstream has sent of an answer that may be whole. */
  #hadAll = false
  /** The protocol's last event has passed: the call is a success, whatever the connections do from here on. */
  #hasEnded = false
  /** The last event and what follows it, until the call is settled and kept; null where nothing waits. */
  #waiting: Buffer[] | null = null
  #isUpstreamOver = false
  /** The settlement is in the journal. */
  #isWritten = false
  /** The note of where the response is kept; null where none is made. */
  #stored: Promise<void> | null = null

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
    this.#admitted.ends.hold()
    this.#deps.onInFlight(1)
    this.#ticket = this.#deps.journal.admit(this.#record.admission, this.#admittedToJournal)
  }

  /** Tears down and settles. Runs on completion, error and abort alike, and after any exception since `start`. */
  unsubscribe(): void {
    // The upstream is about to end: its connection can be used again.
    if (this.#hasEnded && this.#deps.lateUsage.has(this)) return this.#resume()
    if (this.#isSettled) return this.#endUpstream()
    if (this.#record.ending.kind !== 'aborted') return this.#close()
    const told = this.#answer?.toldFailure ?? null
    if (told !== null) return this.finish(told)
    if (!this.#readsOn()) this.#closeLeft()
  }

  /** Returns true when the client has left, and the upstream is read on for what the call owes. */
  #readsOn(): boolean {
    const answer = this.#answer
    this.#hadAll = answer?.isFinished === true
    const isToLimit = this.#upstream?.sent === true && this.#isReadOn()
    if (!isToLimit && !this.#hadAll && answer?.awaitsUsage !== true) return false
    if (!this.#deps.lateUsage.add(this, isToLimit)) return false
    if (this.#hadAll) this.#keepAnswer()
    this.#left = isToLimit ? toItsLimit(this.#record.outputLimit()) : FOR_USAGE
    if (answer !== null) this.#answer = this.#forLeftClient(answer, this.#left)
    this.#resume()
    return true
  }

  /** Keeps for a retry what the client took for the whole answer. */
  #keepAnswer(): void {
    const { claim } = this.#admitted
    claim?.charge()
    void claim?.store()
  }

  #isReadOn(): boolean {
    const { after_client_leaves: ofModel } = this.#admitted.model.entry
    return (ofModel ?? this.#deps.config().after_client_leaves) === 'read_on'
  }

  #forLeftClient(answer: Answer, bounds: LeftBounds): Answer {
    answer.release?.()
    return new LeftAnswer(answer, bounds, this)
  }

  goesOn(): void {
    this.#hadAll = false
  }

  /** Reads on: the client that did not read is gone. */
  #resume(): void {
    this.#upstream?.resume()
  }

  giveUp(): void {
    if (this.#hasEnded) this.#endAll()
    else this.#closeLeft()
  }

  /** Settles a call whose client has left. It is a success where the client had all of the answer. */
  #closeLeft(): void {
    if (this.#isSettled) return
    if (this.#hadAll) this.#recordSuccess()
    this.#close()
  }

  readonly #admittedToJournal = (error: Error | null): void => {
    if (this.#isSettled) return
    this.#guarded(() => (error === null ? this.#attempt(this.#choice.next()!) : this.#unjournaled(error)))
  }

  #unjournaled(error: Error): void {
    this.#ticket = null
    const message = 'The journal cannot be written.'
    this.#record.ending = { kind: 'failed', code: 'service_unavailable', message }
    this.#subscriber.error(notJournaled(error))
  }

  #attempt(route: Route, onFreshConnection = false): void {
    const { call, request } = this.#admitted
    this.#record.forgetAttempt()
    this.#route = route
    const adapter = protocolAdapter(this.#admitted.protocol, route.protocol)
    const urls = adapter.urlsToFetch(call, route.channel.provider)
    if (urls.length === 0) return this.#send(route, adapter, NO_FILES, onFreshConnection)
    this.#files ??= new CallFiles(this.#deps.fetchFiles)
    const send = (files: CallFileMap) => this.#send(route, adapter, files, onFreshConnection)
    this.#files.fetch(urls, msLeft(request.startedAt, performance.now()), send, (error) => this.#fault(error))
  }

  #send(route: Route, adapter: ProtocolAdapter, fetched: CallFileMap, onFreshConnection: boolean): void {
    const { request, call } = this.#admitted
    const { channel } = route
    const { served } = this.#choice
    const { body, dropped } = adapter.encodeRequest(call, {
      upstreamModel: route.upstreamModel,
      outputCeiling: served.model.entry.max_output_tokens ?? null,
      outputLimitField: channel.output_limit_field,
      askUsage:
        !this.#leavesUsageOut && knowsUsageOption(channel) && !this.#deps.usageOptionRefusals.has(route),
      fetched,
      provider: channel.provider,
    })
    this.#serveBy(served)
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

  #endUpstream(): void {
    this.#deps.lateUsage.delete(this)
    this.#abortUpstream()
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
    if (this.#isSettled) throw error
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
    const { keep_alive_seconds: seconds } = this.#deps.config()
    const keepAliveMs = seconds === null || !mayBeFilled(adapter) ? null : seconds * MS_PER_SECOND
    const waiting = { silence: this.#deps.silence, since: request.startedAt, keepAliveMs }
    const answer = answerTo(call, this, { status, headers, adapter, route: this.#route!, waiting })
    if (answer === null) return this.failed(compressedAnswer())
    this.#answer = this.#left === null ? answer : this.#forLeftClient(answer, this.#left)
  }

  #broken(failure: UpstreamFailure): void {
    if (this.#answer !== null) this.#answer.broken(failure)
    else if (
      !this.#hasReplacedConnection &&
      this.#left === null &&
      isStale(failure, this.#record.attempt!.beganAt)
    )
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
    if (this.#waiting !== null) this.#waiting.push(Buffer.from(bytes))
    else if (this.#client !== null) this.#client.data(bytes)
    else this.#subscriber.next({ type: 'data', bytes })
  }

  /**
   * Sends the last event once the call is settled, and kept for its Idempotency-Key: many clients close the connection
   * when they have it, and one that has it has paid, whatever is killed then. Usage that has not come is waited for
   * behind the last event.
   */
  sendLast(bytes: Uint8Array): void {
    if (this.#left !== null) return this.#closeLeft()
    const { claim } = this.#admitted
    this.#hasEnded = true
    this.#waiting = [Buffer.from(bytes)]
    this.#recordSuccess({ type: 'data', bytes })
    const isTimed = this.#deps.lateUsage.add(this)
    const sendWaiting = () => {
      if (claim === undefined) this.#sendWaiting()
      else void claim.store().then(this.#sendWaiting)
    }
    if (isTimed && !this.#answer!.metered().isUsageWhole) sendWaiting()
    else this.#settleThen(sendWaiting)
  }

  readonly #sendWaiting = (): void => {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const bytes of waiting) this.send(bytes)
    this.#endReply()
  }

  /** Ends a stream whose last event has passed: its upstream has ended, or is not waited for any longer. */
  #endAll(): void {
    this.#isUpstreamOver = true
    this.#endUpstream()
    if (this.#isSettled) this.#endReply()
    else this.#settleThen(() => this.#endReply())
  }

  /** Settles a stream whose last event has passed, and goes on once the journal has that. */
  #settleThen(goOn: () => void): void {
    this.#settle((error) => {
      if (error !== undefined) return this.#subscriber.error(notStored(error))
      this.#isWritten = true
      goOn()
    })
  }

  /** Ends the reply of a stream whose last event has passed, once that is sent and settled, and the upstream has ended. */
  #endReply(): void {
    if (this.#waiting === null && this.#isUpstreamOver && this.#isWritten)
      afterwards(this.#stored, () => this.#subscriber.complete())
  }

  isPaused = (): boolean => this.#upstream?.paused ?? false
  hideSecrets = (bytes: Buffer): Buffer => this.#record.hideSecrets(bytes)

  finishWhole(headers: HeaderList, body: Buffer): void {
    if (this.#left !== null) return this.#closeLeft()
    this.#record.firstByteAt = performance.now()
    this.#succeed({ type: 'full', status: this.#status, headers: [...headers, ...this.#addedHeaders], body })
  }

  /** Ends the reply once the journal has the settlement: a client that sees the end has paid, whatever is killed. */
  #succeed(whole?: Reply): void {
    this.#recordSuccess(whole)
    this.#close((error) => {
      if (error !== undefined) return this.#subscriber.error(notStored(error))
      afterwards(this.#stored, () => {
        if (whole !== undefined) this.#subscriber.next(whole)
        this.#subscriber.complete()
      })
    })
  }

  /** @param last part of the answer that has not been sent */
  #recordSuccess(last?: Reply): void {
    this.#record.ending = { kind: 'success' }
    this.#notes.health(false)
    this.#stored = noteStored(this.#deps, this.#admitted, this.#route!, this.#answer!)
    this.#admitted.claim?.charge(last)
  }

  finish(ending: Ending, isTold = false): void {
    if (this.#hasEnded) return this.#endAll()
    if (this.#left !== null) return this.#closeLeft()
    if (ending.kind === 'success') return this.#succeed()
    this.#record.ending = ending
    const error = { code: 'upstream_timeout', message: '', ...ending }
    this.#notes.ended(error.code, error.message)
    const isTimeout = ending.kind === 'timeout'
    this.#notes.health(this.#record.blames({ isTimeout, isChannelFault: true }), error)
    const notice = noticeOfBreak(this.#admitted)
    if (notice !== null) this.send(notice)
    const isOrderly = notice !== null || (isTold && !this.#route!.isTranslated)
    this.#close(() => (isOrderly ? this.#endUnkept() : this.#subscriber.error(brokenOff())))
  }

  /** Ends a failed stream as a whole one ends: the client has read in it that it failed. */
  #endUnkept(): void {
    void this.#admitted.claim?.free()
    this.#subscriber.complete()
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
    if (this.#left !== null) return this.#close()
    this.#subscriber.error(masked(failure.error, (text) => this.#record.mask(text)))
  }

  /** True when another attempt has begun. Only ever before the first byte. */
  #retry(failure: AttemptFailure): boolean {
    if (this.#left !== null) return false
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
    if (this.#isSettled) return
    this.#endUpstream()
    this.#settle(written)
  }

  #settle(written?: (error?: Error) => void): void {
    this.#isSettled = true
    this.#files?.end()
    this.#notes.endOpen()
    this.#choice.end()
    if (this.#answer !== null) this.#record.metered = this.#answer.metered()
    const now = performance.now()
    const { outputRates } = this.#deps
    this.#record.measureOutput(outputRates, now, this.#left?.isUsageOnly === false)
    const { settlement, cost, oddities } = this.#record.settle(Date.now(), now)
    endReservation(this.#deps, this.#admitted, cost)
    this.#deps.journal.settle(this.#ticket, settlement, written)
    this.#deps.onInFlight(-1)
    this.#deps.onSettled(settlement, oddities, this.#route?.upstreamModel ?? '')
    this.#trace?.ended(settlement, this.#admitted.request.path, this.#status)
    this.#admitted.ends.release()
  }
}

/** The error of a stream that ends before it is whole: what the client has of it must not be kept. */
const brokenOff = (): Failure => new Failure('upstream_error', INCOMPLETE)

/** Returns whether a stream may have bytes that its upstream did not send. */
const mayBeFilled = ({ from, to }: ProtocolAdapter): boolean => from !== 'generate-content' || from !== to
