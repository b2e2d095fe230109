/** One call under way: its attempts, its answer, and its one settlement. Used by `stages/forward.ts`. */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Subscriber, Unsubscribable } from 'rxjs'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { FAILURES, Failure } from '../../../schemas/failure.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { DataSink, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { Ticket } from '../../../src/journal/journal.ts'
import {
  type BodyInputs,
  type BodyResults,
  type BodyWorkName,
  workOnBody,
} from '../../../src/protocols/body-work.ts'
import type { EncodedRequest, EncodeOptions, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../src/protocols/registry.ts'
import type { CallTrace } from '../../../src/telemetry/call-trace.ts'
import type {
  ResponseHeaders,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
} from '../../../src/upstream/client.ts'
import { withHeaders } from '../../replies/error.ts'
import type { AdmittedCall } from '../../stages/billing/precharge.ts'
import { endReservation } from '../../stages/billing/reserve.ts'
import type { ServedModel } from '../../stages/select-model.ts'
import { noticeOfBreak } from '../../stages/server-tools.ts'
import { type Answer, type AnswerReceiver, answerTo } from './answers.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { type CallFileMap, CallFiles, NO_FILES } from './call-files.ts'
import { CallRecord, type Ending, endingOf } from './call-record.ts'
import { attemptMs, msLeft } from './call-time.ts'
import type { ForwardDeps } from './deps.ts'
import { maskingKeys } from './masked-answers.ts'
import { RouteChoice } from './route-choice.ts'
import { afterwards, noteStored, noteUnfinished } from './stored-response.ts'
import { answerHeaders, plannedTranslation, translationHeaders } from './translation-headers.ts'
import {
  type AttemptFailure,
  brokenConnection,
  compressedAnswer,
  erredAnswer,
  isStale,
  masked,
  notJournaled,
  notStored,
} from './upstream-error.ts'
import { knowsUsageOption, rejectsUsageOption } from './usage-option.ts'

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
  /** Headers that describe the translation of the last attempt. */
  #translation: HeaderList
  #lastFailure: AttemptFailure | null = null
  #leavesUsageOut = false
  #hasReplacedConnection = false
  #isOver = false

  constructor(deps: ForwardDeps, admitted: AdmittedCall, subscriber: Subscriber<Reply>) {
    this.#deps = deps
    this.#admitted = admitted
    this.#subscriber = subscriber
    this.#choice = new RouteChoice(deps, admitted)
    this.#translation = plannedTranslation(admitted.protocol, admitted)
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
    this.#subscriber.error(withHeaders(notJournaled(error), this.#translation))
  }

  #attempt(route: Route, onFreshConnection = false): void {
    const { call, request } = this.#admitted
    this.#record.forgetAttempt()
    this.#route = route
    const adapter = protocolAdapter(this.#admitted.protocol, route.protocol)
    this.#translation = translationHeaders(route, adapter)
    const send = (files: CallFileMap) => this.#encode(route, adapter, files, onFreshConnection)
    const fetch = (urls: readonly string[]) => {
      if (urls.length === 0) return send(NO_FILES)
      this.#files ??= new CallFiles(this.#deps.fetchFiles)
      const leftMs = msLeft(request.startedAt, performance.now())
      this.#files.fetch(urls, leftMs, send, (error) => this.#fault(error))
    }
    const { provider } = route.channel
    if (!route.isTranslated) return fetch(adapter.urlsToFetch(call, provider))
    this.#onBody('urls', { ...this.#pairOf(adapter), provider }, fetch)
  }

  #pairOf({ from: client, to: upstream }: ProtocolAdapter) {
    return { client, upstream, call: this.#admitted.call }
  }

  /** Works on the client's body, and goes on unless the call has ended meanwhile. */
  #onBody<Name extends BodyWorkName>(
    name: Name,
    input: BodyInputs[Name],
    done: (result: BodyResults[Name]) => void,
  ): void {
    const { known, request } = this.#admitted
    const result = workOnBody(this.#deps, known.account.id, name, input, request.body)
    if (!(result instanceof Promise)) return done(result)
    const goOn = (found: BodyResults[Name]) => {
      if (!this.#isOver) this.#guarded(() => done(found))
    }
    result.then(goOn, (error: unknown) => {
      if (!this.#isOver) this.#fault(error)
    })
  }

  #encode(route: Route, adapter: ProtocolAdapter, fetched: CallFileMap, onFreshConnection: boolean): void {
    const { channel } = route
    const { served } = this.#choice
    const options: EncodeOptions = {
      upstreamModel: route.upstreamModel,
      outputCeiling: served.model.entry.max_output_tokens ?? null,
      outputLimitField: channel.output_limit_field,
      askUsage:
        !this.#leavesUsageOut && knowsUsageOption(channel) && !this.#deps.usageOptionRefusals.has(route),
      fetched,
      provider: channel.provider,
    }
    const send = (encoded: EncodedRequest) => this.#send(route, adapter, encoded, onFreshConnection)
    // Where both speak one protocol, only places in the body change.
    if (!route.isTranslated) return send(adapter.encodeRequest(this.#admitted.call, options))
    this.#onBody('encode', { ...this.#pairOf(adapter), options }, send)
  }

  #send(
    route: Route,
    adapter: ProtocolAdapter,
    { body, notes, ...leftOut }: EncodedRequest,
    onFreshConnection: boolean,
  ): void {
    const { request, call } = this.#admitted
    const { channel } = route
    this.#serveBy(this.#choice.served)
    this.#adapter = adapter
    const now = performance.now()
    const traceparent = this.#notes.began(route, notes ?? leftOut.dropped, now)
    this.#translation = translationHeaders(route, adapter, leftOut)
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
    this.#guarded(() => this.#head(status, headers, maskingKeys(this.#adapter!, this.#route!.channel)))
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
    this.#subscriber.error(withHeaders(error, this.#translation))
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
      headers: answerHeaders(headers, this.#admitted, this.#translation),
      flow: this.#upstream,
      direct: (sink) => {
        this.#client = sink
      },
    })
  }

  firstByte(isError: boolean): void {
    // The same request without the option succeeds: only this proves that the error was about the option.
    if (this.#leavesUsageOut && !isError) this.#deps.usageOptionRefusals.add(this.#route!)
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
    const all = answerHeaders(headers, this.#admitted, this.#translation)
    this.#succeed({ type: 'full', status: this.#status, headers: all, body })
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
    const isChannelFault = ending.kind !== 'refused'
    this.#notes.health(this.#record.blames({ isTimeout, isChannelFault }), error)
    const notice = noticeOfBreak(this.#admitted)
    if (notice !== null) this.send(notice)
    // The stream ends here all the same; the store of answers must not keep this one.
    const broken = new Failure('upstream_error', 'The upstream ended the stream before it was complete.')
    this.#close(() => this.#subscriber.error(broken))
  }

  erred = (event: Buffer): AttemptFailure => erredAnswer(event, this.#route!)

  failsOver(failure: AttemptFailure): boolean {
    const isOtherKey = this.#choice.keyRefused(this.#route!, failure)
    const attempt = this.#another(failure)
    if (attempt === null) return false
    this.#endAttempt(failure, isOtherKey)
    this.#goOn(failure, attempt)
    return true
  }

  failed(failure: AttemptFailure): void {
    this.#endAttempt(failure, this.#choice.keyRefused(this.#route!, failure))
    this.#goOn(failure)
  }

  #endAttempt(failure: AttemptFailure, isOtherKey: boolean): void {
    this.#abortUpstream()
    if (this.#answer !== null) this.#record.metered = this.#answer.metered()
    this.#answer = null
    this.#notes.ended(failure.code, failure.message)
    // A channel that goes on with another key is not at fault.
    const isFault = isOtherKey ? false : this.#record.blames(failure)
    this.#notes.health(isFault, { ...failure, message: failure.detail ?? failure.message })
  }

  /** Makes another attempt, or replies with the failure of the last one. */
  #goOn(failure: AttemptFailure, attempt = this.#another(failure)): void {
    this.#lastFailure = failure
    if (attempt !== null) return attempt()
    this.#record.ending = endingOf(failure)
    this.#status = failure.error.status
    const shown = masked(failure.error, (text) => this.#record.mask(text))
    this.#subscriber.error(withHeaders(shown, this.#translation))
  }

  /** Returns what begins another attempt; null where none follows. Only ever before the first byte. */
  #another(failure: AttemptFailure): (() => void) | null {
    const route = this.#route!
    const isLeftOut = this.#leavesUsageOut || this.#deps.usageOptionRefusals.has(route)
    if (!isLeftOut && rejectsUsageOption(route, this.#admitted.call, failure))
      return () => {
        this.#leavesUsageOut = true
        this.#attempt(route)
      }
    const attempts = this.#record.attemptsCount - Number(this.#hasReplacedConnection)
    const other = this.#choice.afterFailure(failure, attempts)
    if (other === null) return null
    return () => {
      this.#leavesUsageOut = false
      this.#attempt(other)
    }
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
    noteUnfinished(this.#deps, this.#admitted, this.#record)
    this.#deps.journal.settle(this.#ticket, settlement, written)
    this.#deps.onInFlight(-1)
    this.#deps.onSettled(settlement, oddities, this.#route?.upstreamModel ?? '')
    this.#trace?.ended(settlement, this.#admitted.request.path, this.#status)
  }
}
