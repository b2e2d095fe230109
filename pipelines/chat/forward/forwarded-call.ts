/** One call under way: its attempts, its answer, and its one settlement. See docs/architecture.md, "A call". */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Subscriber, Unsubscribable } from 'rxjs'
import { FAILURES, Failure } from '../../../schemas/failure.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { DataSink, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { Ticket } from '../../../src/journal/journal.ts'
import type { EncodedRequest, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import { callAdapter } from '../../../src/protocols/registry.ts'
import type {
  ResponseHeaders,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
} from '../../../src/upstream/client.ts'
import { withHeaders } from '../../calls/errors.ts'
import {
  type AttemptFailure,
  brokenOff,
  compressedAnswer,
  isStale,
  maskError,
  notJournaled,
  notStored,
  toConnectionFailure,
} from '../../calls/upstream-error.ts'
import { type AdmittedCall, endReservation } from '../precharge.ts'
import {
  type FinishedCall,
  FinishedStream,
  type LeftCall,
  type ReadOn,
  readOn,
  writeBreakNotice,
} from './after-answer.ts'
import { chooseAnswer, maskKeys } from './answers.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { AttemptBody, buildAttemptRequest, chooseEncodeOptions, type WaitingCall } from './attempt-request.ts'
import { CallRecord, type Ending, FAULT, toEnding, toRefusedEnding, UNJOURNALED } from './call-record.ts'
import type { Forwarding } from './deps.ts'
import { noteStoredResponse, noteUnfinishedCall, runAfter } from './response-notes.ts'
import { RouteChoice } from './route-choice.ts'
import { type Answer, type AnswerReceiver, describeWaiting, type Waiting } from './stream-answer.ts'
import { joinAnswerHeaders, makeTranslationHeaders, planTranslationHeaders } from './translation-headers.ts'

export class ForwardedCall
  implements AnswerReceiver, FinishedCall, LeftCall, UpstreamHandler, Unsubscribable, WaitingCall
{
  #answer: Answer | null = null
  /** Sink to which the client's bytes go directly; null when they go as events. */
  #client: DataSink | null = null
  readonly #deps: Forwarding
  #admitted: AdmittedCall
  readonly #subscriber: Subscriber<Reply>
  readonly #choice: RouteChoice
  readonly record: CallRecord
  readonly #notes: AttemptNotes
  readonly #body: AttemptBody
  #ticket: Ticket | null = null
  #route: Route | null = null
  #adapter: ProtocolAdapter | null = null
  #upstream: UpstreamCall | null = null
  #status = 200
  /** Headers that describe the translation of the last attempt. */
  #translation: HeaderList = []
  #lastFailure: AttemptFailure | null = null
  /** A kept connection that proves to be closed is replaced once. */
  #mayReplaceConnection = true
  #isSettled = false
  /** The client has left, and the upstream is read on; null while the client is there. */
  #left: ReadOn | null = null
  #finished: FinishedStream | null = null
  #stored: Promise<void> | null = null

  constructor(deps: Forwarding, admitted: AdmittedCall, subscriber: Subscriber<Reply>) {
    this.#deps = deps
    this.#admitted = admitted
    this.#subscriber = subscriber
    this.#choice = new RouteChoice(deps, admitted)
    this.record = new CallRecord(admitted, this.#choice.tried)
    this.#body = new AttemptBody(deps, this)
    this.#notes = new AttemptNotes(deps, admitted.request, this.record, this.#choice)
  }

  start(): void {
    this.#subscriber.add(this)
    this.#admitted.ends.hold()
    this.#deps.onInFlight(1)
    this.#ticket = this.#deps.journal.admit(this.record.admission, this.#admittedToJournal)
  }

  /** Tears down and settles. Runs on completion, error and abort alike, and after any exception since `start`. */
  unsubscribe(): void {
    // The upstream is about to end: its connection can be used again.
    if (this.#finished !== null && this.#deps.lateUsage.has(this)) return this.#upstream?.resume()
    if (this.#isSettled) return this.endUpstream()
    if (this.record.ending.kind !== 'aborted') return this.#close()
    const told = this.#answer?.toldFailure ?? null
    if (told !== null) return this.finish(told)
    this.#mayReplaceConnection = false
    this.#left = readOn(this.#deps, this, this.record, this.#answer, this.#upstream?.sent === true)
    if (this.#left === null) return this.#closeLeft()
    if (this.#left.hadAll) void this.#admitted.claim?.keep()
    if (this.#answer !== null) this.#answer = this.#left.discardRest(this.#answer)
    this.#upstream?.resume()
  }

  giveUp(): void {
    if (this.#finished !== null) this.#finished.end()
    else this.#closeLeft()
  }

  /** Settles a call whose client has left: a success where it had all of the answer. A whole one is kept for a retry. */
  #closeLeft(last?: Reply): void {
    if (this.#isSettled) return
    if (this.#left?.hadAll ?? this.#answer?.isFinished === true) this.#recordSuccess()
    else if (last !== undefined) this.#admitted.claim?.charge(last)
    this.#close()
  }

  readonly #admittedToJournal = (error: Error | null): void => {
    if (this.#isSettled) return
    this.#runGuarded(() =>
      error === null ? this.#attempt(this.#choice.next()!) : this.#failUnjournaled(error),
    )
  }

  #failUnjournaled(error: Error): void {
    this.#ticket = null
    this.record.ending = UNJOURNALED
    const planned = planTranslationHeaders(this.#admitted.protocol, this.#admitted)
    this.#subscriber.error(withHeaders(notJournaled(error), planned))
  }

  #attempt(route: Route, onFreshConnection = false): void {
    this.record.forgetAttempt()
    this.#route = route
    const adapter = callAdapter(this.#admitted.protocol, this.#admitted.call, route.protocol)
    this.#translation = makeTranslationHeaders(route, adapter, this.#admitted.model)
    const asksUsage = this.#choice.asksUsage(route)
    const options = chooseEncodeOptions(this.#admitted, route, this.#choice.served, asksUsage)
    this.#body.write(this.#admitted, route, adapter, options, (encoded) =>
      this.#send(route, adapter, encoded, onFreshConnection),
    )
  }

  goOn(work: () => void): void {
    if (!this.#isSettled) this.#runGuarded(work)
  }

  #send(route: Route, adapter: ProtocolAdapter, encoded: EncodedRequest, onFreshConnection: boolean): void {
    this.#admitted = this.record.admitted = this.#choice.setModel(this.#admitted)
    this.#adapter = adapter
    const now = performance.now()
    const traceparent = this.#notes.begin(route, encoded.notes ?? encoded.dropped, now)
    this.#translation = makeTranslationHeaders(route, adapter, this.#admitted.model, encoded)
    const request = buildAttemptRequest(this.#admitted, route, now, {
      body: encoded.body,
      onFreshConnection,
      traceparent,
    })
    this.#upstream = this.#deps.callUpstream(request, this)
  }

  endUpstream(): void {
    this.#deps.lateUsage.delete(this)
    this.#abortUpstream()
  }

  #abortUpstream(): void {
    this.#answer?.release?.()
    const upstream = this.#upstream
    if (upstream === null) return
    this.#upstream = null
    upstream.abort()
    this.record.isSent = upstream.sent
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#runGuarded(() => this.#beginAnswer(status, headers, maskKeys(this.#adapter!, this.#route!.channel)))
  }

  onData(bytes: Uint8Array): void {
    try {
      this.#answer!.data(bytes as Buffer)
    } catch (error) {
      this.#endFaulty(error)
    }
  }

  onEnd(): void {
    this.#runGuarded(() => this.#answer!.end())
  }

  onError(failure: UpstreamFailure): void {
    this.#runGuarded(() => this.#handleBroken(failure))
  }

  #runGuarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#endFaulty(error)
    }
  }

  /** Refuses what cannot be translated, and ends a call in which an exception occurs: its client must not wait forever. */
  #endFaulty(error: unknown): void {
    if (this.#isSettled) throw error
    // The client has left: no error is sent.
    if (this.#subscriber.closed) return this.#close()
    const failure = error instanceof Failure ? error : null
    const last = this.#lastFailure
    // It could be written for an upstream before: how that one failed is the answer, unless another does better.
    if (failure !== null && last !== null) return this.#runGuarded(() => this.#goOn(last))
    this.record.ending = failure === null ? FAULT : toRefusedEnding(failure)
    this.#status = failure?.status ?? FAILURES.internal_error.status
    this.#subscriber.error(withHeaders(error, this.#translation))
  }

  #beginAnswer(status: number, headers: ResponseHeaders, adapter: ProtocolAdapter): void {
    this.#status = status
    this.#notes.noteStatus(status)
    const answer = chooseAnswer(this.#admitted.call, this, { status, headers, adapter, route: this.#route! })
    if (answer === null) return this.fail(compressedAnswer())
    this.#answer = this.#left?.discardRest(answer) ?? answer
  }

  #handleBroken(failure: UpstreamFailure): void {
    if (this.#answer !== null) return this.#answer.breakOff(failure)
    const broken = toConnectionFailure(failure)
    const isReplaced = this.#mayReplaceConnection && isStale(failure, this.record.attempt!.beganAt)
    if (!isReplaced) return this.fail(broken)
    // Connections that idle together close together: a new one is no retry, and outside the budget of retries.
    this.#mayReplaceConnection = false
    this.#abortUpstream()
    this.#notes.replace(broken)
    this.#attempt(this.#route!, true)
  }

  begin(headers: HeaderList): void {
    this.#body.end()
    this.#admitted = this.#choice.admitted = this.record.releaseBody()
    this.#subscriber.next({
      type: 'head',
      status: this.#status,
      headers: joinAnswerHeaders(headers, this.#admitted, this.#translation),
      flow: this.#upstream,
      direct: (sink) => {
        this.#client = sink
      },
    })
  }

  noteFirstByte(isError: boolean): void {
    if (!isError) this.#choice.noteSuccess(this.#route!)
    this.record.firstByteAt = performance.now()
  }

  send(bytes: Uint8Array): void {
    if (this.#finished?.holds(bytes)) return
    if (this.#client !== null) this.#client.data(bytes)
    else this.#subscriber.next({ type: 'data', bytes })
  }

  /** Sends the last event once the call is settled and kept: many clients close the connection when they have it. */
  sendLast(bytes: Uint8Array): void {
    if (this.#left !== null) return this.#closeLeft({ type: 'data', bytes })
    this.#recordSuccess({ type: 'data', bytes })
    this.#finished = new FinishedStream(this, this.#admitted.claim, bytes)
    this.#finished.begin(this.#deps.lateUsage.add(this) && !this.#answer!.readMeter().isUsageWhole)
  }

  settleThen(written: () => void): void {
    this.#settle((error) => (error === undefined ? written() : this.#subscriber.error(notStored(error))))
  }

  endReply(whole?: Reply): void {
    runAfter(this.#stored, () => {
      if (whole !== undefined) this.#subscriber.next(whole)
      this.#subscriber.complete()
    })
  }

  readWaiting(): Waiting {
    return describeWaiting(this.#deps, this.#admitted, this.#adapter!)
  }

  isPaused(): boolean {
    return this.#upstream?.paused ?? false
  }

  finishWhole(headers: HeaderList, body: Buffer): void {
    const all = joinAnswerHeaders(headers, this.#admitted, this.#translation)
    const whole: Reply = { type: 'full', status: this.#status, headers: all, body }
    if (this.#left !== null) return this.#closeLeft(whole)
    this.record.firstByteAt = performance.now()
    this.#succeed(whole)
  }

  /** Ends the reply once the journal has the settlement: a client that sees the end has paid, whatever is killed. */
  #succeed(whole?: Reply): void {
    this.#recordSuccess(whole)
    this.endUpstream()
    this.settleThen(() => this.endReply(whole))
  }

  #recordSuccess(last?: Reply): void {
    this.record.ending = { kind: 'success' }
    this.#notes.noteHealth(false)
    this.#stored = noteStoredResponse(this.#deps, this.#admitted, this.#route!, this.#answer!)
    this.#admitted.claim?.charge(last)
  }

  finish(ending: Ending, isTold = false): void {
    if (this.#finished !== null) return this.#finished.end()
    if (this.#left !== null) return this.#closeLeft()
    if (ending.kind === 'success') return this.#succeed()
    this.record.ending = ending
    this.#notes.breakOff(ending)
    const notice = writeBreakNotice(this.#admitted)
    if (notice !== null) this.send(notice)
    // The client has read in it that it failed.
    const isReadable = !this.#route!.isTranslated || this.#answer?.beganWithError === true
    const isOrderly = notice !== null || (isTold && isReadable)
    this.#close(() => {
      if (!isOrderly) return this.#subscriber.error(brokenOff())
      void this.#admitted.claim?.release()
      this.#subscriber.complete()
    })
  }

  failOver(failure: AttemptFailure): boolean {
    const isOtherKey = this.#choice.restKey(this.#route!, failure)
    const route = this.#chooseAnother(failure)
    // Nobody reads the event of a call whose client has left.
    if (route === null && this.#left === null) return false
    this.#endAttempt(failure, isOtherKey)
    this.#goOn(failure, route)
    return true
  }

  fail(failure: AttemptFailure): void {
    this.#endAttempt(failure, this.#choice.restKey(this.#route!, failure))
    this.#goOn(failure)
  }

  #endAttempt(failure: AttemptFailure, isOtherKey: boolean): void {
    this.#abortUpstream()
    if (this.#answer !== null) this.record.metered = this.#answer.readMeter()
    this.#answer = null
    this.#notes.fail(failure, isOtherKey)
  }

  /** Makes another attempt, or replies with the failure of the last one. */
  #goOn(failure: AttemptFailure, route = this.#chooseAnother(failure)): void {
    this.#lastFailure = failure
    if (route !== null) return this.#attempt(route)
    this.record.ending = toEnding(failure)
    this.#status = failure.error.status
    if (this.#left !== null) return this.#close()
    const shown = maskError(failure.error, (text) => this.record.mask(text))
    this.#subscriber.error(withHeaders(shown, this.#translation))
  }

  /** Returns the route of another attempt; null where none follows. Only ever before the first byte. */
  #chooseAnother(failure: AttemptFailure): Route | null {
    if (this.#left !== null) return null
    const attempts = this.record.attemptsCount - Number(!this.#mayReplaceConnection)
    return this.#choice.chooseAfterFailure(this.#route!, failure, attempts)
  }

  /** Settles and ends the call. `written` gets an error where the settlement may be lost with this machine. */
  #close(written?: (error?: Error) => void): void {
    if (this.#isSettled) return
    this.endUpstream()
    this.#settle(written)
  }

  #settle(written?: (error?: Error) => void): void {
    this.#isSettled = true
    this.#body.end()
    this.#notes.endOpen()
    this.#choice.end()
    if (this.#answer !== null) this.record.metered = this.#answer.readMeter()
    const now = performance.now()
    this.record.measureOutput(this.#deps.outputRates, now, this.#left?.isToLimit === true)
    const { settlement, cost, oddities } = this.record.settle(Date.now(), now)
    endReservation(this.#deps, this.#admitted, cost)
    noteUnfinishedCall(this.#deps, this.#admitted, this.record)
    this.#deps.journal.settle(this.#ticket, settlement, written)
    this.#deps.onInFlight(-1)
    this.#deps.onSettled(settlement, oddities, this.#route?.upstreamModel ?? '')
    this.#notes.endTrace(settlement, this.#status)
    this.#admitted.ends.release()
  }
}
