/**
 * An upstream's answer that comes as a stream. Takes the bytes of one attempt, and reports to its call what to send and
 * how it ended. Nothing here waits: after the first byte all is synchronous.
 */
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import type { HeaderList } from '../../../src/http/handler.ts'
import type { AnswerStream, Metered, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders, UpstreamFailure } from '../../../src/upstream/client.ts'
import {
  type AttemptFailure,
  type ErrorSource,
  endedWithoutAnswer,
  INCOMPLETE,
  NO_ANSWER,
  noEvent,
  toConnectionFailure,
  toStreamFailure,
} from '../../calls/upstream-error.ts'
import type { AdmittedCall } from '../precharge.ts'
import { type CallRecord, type Ending, toEnding } from './call-record.ts'

/** The call of an answer, which sends on what the answer makes. */
export interface AnswerReceiver {
  /** Sets the head, which goes out with the next bytes; no other attempt follows. */
  begin(headers: HeaderList): void
  /** Called when the answer itself begins, or an error in its place: its first bytes go out next. */
  noteFirstByte(isError: boolean): void
  send(bytes: Uint8Array): void
  /** Sends the protocol's last event: the call is a success from here on. More bytes may follow, and `finish` does. */
  sendLast(bytes: Uint8Array): void
  /** Returns true while the client has not taken all that was sent. */
  isPaused(): boolean
  /**
   * Ends a stream.
   * @param isTold the upstream has sent why the answer is none, and has ended the stream in good order
   */
  finish(readEnding: Ending, isTold?: boolean): void
  /** Sends the whole answer and ends it. */
  finishWhole(headers: HeaderList, body: Buffer): void
  /**
   * Called with an error that came first: makes another attempt in place of this one. Returns false where none is left,
   * or none would do better: the event is the answer then.
   */
  failOver(failure: AttemptFailure): boolean
  /** Called when nothing went out yet: makes another attempt, or replies with this failure. */
  fail(failure: AttemptFailure): void
  /** Runs the work unless the call has ended; an exception ends the call. */
  goOn(work: () => void): void
  /** Returns how a stream waits for its upstream. */
  readWaiting(): Waiting
  readonly record: Pick<CallRecord, 'hideSecrets' | 'quoteCost'>
}

/** Handler of an upstream's answer, called piece by piece. */
export interface Answer {
  data(bytes: Buffer): void
  end(): void
  breakOff(failure: UpstreamFailure): void
  readMeter(): Metered
  /** Called when the call is over, or continues with another attempt. */
  release?(): void
  /** The model has finished, and the usage that its upstream reports after that has not come. */
  readonly awaitsUsage?: boolean
  /** All of the answer has been sent, unless its protocol lets more follow. */
  readonly isFinished?: boolean
  /** Its first event was an error, which the client has got as it came. */
  readonly beganWithError?: boolean
  /** The ending that the client has read in the stream itself, where that is a failure; null without one. */
  readonly toldFailure?: Ending | null
}

/** Limit of the bytes before the first event: comments that keep the connection alive. */
const MAX_HELD_BYTES = 65_536
/** The largest unstreamed response. */
export const MAX_WHOLE_RESPONSE_BYTES = 64 * 1024 * 1024
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

export const isCompressed = ({ contentEncoding }: ResponseHeaders): boolean =>
  contentEncoding != null && contentEncoding.toLowerCase() !== 'identity'

/** Nothing is sent yet. */
const WAITING = 0
/** Only keep-alive bytes are sent: no other attempt follows. */
const SILENT = 1
const FLOWING = 2
/** The last event was sent: what the upstream still sends passes unread. */
const ENDED = 3

export interface Waiting {
  readonly silence: SilenceWatch
  /** Since when the client waits, on the clock of `performance.now()`. */
  readonly since: number
  /** Fills a silence of so long; null: none is filled. */
  readonly keepAlive: { readonly ms: number; readonly bytes: Buffer } | null
  /** Time without an event of the upstream after which the stream ends; null: it goes on. */
  readonly idleMs: number | null
}

export class StreamAnswer implements Answer, WatchedStream {
  // The fields that every chunk touches are first.
  readonly #call: AnswerReceiver
  readonly #meter: AnswerStream
  #state: typeof WAITING | typeof SILENT | typeof FLOWING | typeof ENDED = WAITING
  /** Bytes went out since the last tick. */
  #hasSent = false

  readonly #headers: HeaderList
  readonly #silence: SilenceWatch
  readonly #source: ErrorSource
  readonly #keepAlive: NonNullable<Waiting['keepAlive']>
  #quietSince: number
  readonly #idleMs: number
  /** An event has arrived since the last tick. */
  #hasEvent = true
  #eventAt = 0
  #hasFilled = false
  #held: Buffer[] = []
  #heldBytes = 0

  constructor(call: AnswerReceiver, contentType: string, stream: AnswerStream, source: ErrorSource) {
    const { silence, since, keepAlive, idleMs } = call.readWaiting()
    this.#source = source
    this.#call = call
    this.#headers = [
      ['content-type', contentType],
      ['cache-control', 'no-cache'],
    ]
    this.#meter = stream
    this.#silence = silence
    this.#quietSince = since
    this.#keepAlive = keepAlive ?? NEVER
    this.#idleMs = idleMs ?? Number.POSITIVE_INFINITY
    if (keepAlive !== null || idleMs !== null) silence.add(this)
  }

  readMeter(): Metered {
    return this.#meter
  }

  get awaitsUsage(): boolean {
    return this.#meter.awaitsUsage
  }

  get isFinished(): boolean {
    return this.#meter.isFinished && this.#ending() === SUCCESS
  }

  get beganWithError(): boolean {
    return this.#meter.firstError !== null
  }

  get toldFailure(): Ending | null {
    return this.#state !== WAITING && this.#hasTold() ? this.#ending() : null
  }

  data(bytes: Buffer): void {
    const out = this.#meter.push(bytes)
    if (!this.#hasEvent) this.#hasEvent = !isComment(bytes)
    if (this.#state === FLOWING) {
      if (out === null) return
      this.#hasSent = true
      this.#send(out)
      return
    }
    if (this.#state !== WAITING) return this.#flow(out)
    // The status waits for the first event of an answer: what ends or errs before that is a failed attempt.
    const { firstError, isAnswer, usage, hasBegun, isComplete } = this.#meter
    if (firstError !== null && this.#endsAttempt(firstError)) return
    const begins = firstError !== null || isAnswer || usage !== null || (hasBegun && !isComplete)
    if (!begins && this.#heldBytes < MAX_HELD_BYTES) return this.#hold(out)
    this.#begin(out)
  }

  tick(now: number): void {
    const isPaused = this.#call.isPaused()
    if (this.#hasEvent || isPaused) {
      this.#hasEvent = false
      this.#eventAt = now
    } else if (now - this.#eventAt >= this.#idleMs && this.#state !== ENDED)
      return this.#call.goOn(() => this.#breakOff(noEvent()))
    // A client that does not read is not kept waiting by the upstream.
    if (this.#hasSent || isPaused) {
      this.#hasSent = false
      this.#quietSince = now
      return
    }
    if (this.#state === ENDED || now - this.#quietSince < this.#keepAlive.ms) return
    if (this.#state === WAITING) this.#begin(null)
    else if (!this.#meter.isBetweenEvents) return
    this.#quietSince = now
    if (!this.#meter.isBetweenEvents) return
    this.#hasFilled = true
    this.#call.send(this.#keepAlive.bytes)
  }

  release(): void {
    this.#silence.delete(this)
  }

  #hold(out: Buffer | null): void {
    if (out === null) return
    this.#held.push(Buffer.from(out))
    this.#heldBytes += out.length
  }

  /** Sends the head, the bytes held so far, and `out`. */
  #begin(out: Buffer | null): void {
    this.#state = SILENT
    this.#call.begin(this.#headers)
    const held = this.#held
    this.#held = []
    if (held.length > 0) this.#flow(Buffer.concat(held))
    this.#flow(out)
  }

  /** Sends the first bytes of the answer itself, or those that follow them. */
  #flow(out: Buffer | null): void {
    if (out === null) return
    if (this.#state === ENDED) return this.#call.send(out)
    const isFirst = this.#state === SILENT
    this.#state = FLOWING
    this.#hasSent = true
    if (isFirst) this.#call.noteFirstByte(this.#meter.firstError !== null)
    // Only at the beginning is it a byte order mark.
    const isMarked = isFirst && this.#hasFilled && out.indexOf(BYTE_ORDER_MARK) === 0
    this.#send(isMarked ? out.subarray(BYTE_ORDER_MARK.length) : out)
  }

  /** Sends bytes; an upstream's error passes unchanged except for the channel's secrets. */
  #send(out: Buffer): void {
    const { laterError, firstError, hasEnded } = this.#meter
    if (laterError !== null || firstError !== null) this.#call.send(this.#call.record.hideSecrets(out))
    else if (hasEnded && this.#ending() === SUCCESS) {
      this.#state = ENDED
      this.#call.sendLast(out)
    } else this.#call.send(out)
  }

  end(): void {
    const tail = this.#meter.end()
    const { isAnswer, firstError } = this.#meter
    if (this.#state !== WAITING) this.#flow(tail)
    else if (firstError !== null && this.#endsAttempt(firstError)) return
    // Nothing was answered or sent: another channel may do better.
    else if (firstError === null && !isAnswer) return this.#call.fail(endedWithoutAnswer())
    else this.#begin(tail)
    this.#call.finish(this.#ending(), this.#hasTold())
  }

  /** Returns whether the attempt ends with an error that came first: then nothing of it goes out. */
  #endsAttempt(event: Buffer): boolean {
    const failure = toStreamFailure(event, this.#source)
    if (this.#call.failOver(failure)) return true
    if (failure.hidesEvent !== true) return false
    this.#call.fail(failure)
    return true
  }

  /** The client has read in the stream that the answer is none, or no whole one. */
  #hasTold(): boolean {
    const { laterError, firstError, hasEnded } = this.#meter
    return laterError !== null || firstError !== null || (hasEnded && this.#ending() !== SUCCESS)
  }

  /** Returns the ending of a stream that ends here in good order. An error takes precedence over an end mark. */
  #ending(): Ending {
    const { laterError, firstError, isAnswer, isComplete } = this.#meter
    const error = laterError ?? firstError
    if (error !== null) return toEnding(toStreamFailure(error, this.#source))
    if (!isComplete) return makeFailedEnding(INCOMPLETE)
    return isAnswer ? SUCCESS : makeFailedEnding(NO_ANSWER)
  }

  breakOff(failure: UpstreamFailure): void {
    this.#breakOff(toConnectionFailure(failure))
  }

  #breakOff(broken: AttemptFailure): void {
    if (this.#state === WAITING) return this.#call.fail(broken)
    const hadTold = this.#hasTold()
    this.#flow(this.#meter.end())
    const { isFinished, hasEnded } = this.#meter
    // An event that the time cuts in two is no error of the upstream.
    if (isFinished || (broken.isTimeout ? hadTold : this.#hasTold()))
      return this.#call.finish(this.#ending(), hasEnded)
    const { message } = broken
    this.#call.finish(broken.isTimeout ? { kind: 'timeout', message } : makeFailedEnding(message))
  }
}

const SUCCESS: Ending = { kind: 'success' }

const makeFailedEnding = (message: string): Ending => ({ kind: 'failed', code: 'upstream_error', message })

/** The most by which a comment may be late. */
const TICK_MS = 1_000

const MS_PER_SECOND = 1000

const COLON = 0x3a
/** Longer than the comments that keep a connection alive. */
const MAX_COMMENT_BYTES = 256
const COMMENTS = /^(?::[^\n]*\n|\r?\n)+$/

/** Returns whether a piece of a stream is nothing but comments, by which an upstream keeps a connection alive. */
const isComment = (bytes: Buffer): boolean =>
  bytes[0] === COLON && bytes.length <= MAX_COMMENT_BYTES && COMMENTS.test(bytes.toString('latin1'))

const NEVER = { ms: Number.POSITIVE_INFINITY, bytes: Buffer.alloc(0) }

interface WaitingDeps {
  readonly silence: SilenceWatch
  readonly config: () => Pick<ConfigFile, 'keep_alive_seconds'>
}

/** Returns how the stream of a call waits. */
export function describeWaiting(
  { silence, config }: WaitingDeps,
  { call, request, time }: AdmittedCall,
  adapter: ProtocolAdapter,
): Waiting {
  const { keep_alive_seconds: seconds } = config()
  const bytes = seconds === null ? null : adapter.keepAlive(call)
  const keepAlive = seconds === null || bytes === null ? null : { ms: seconds * MS_PER_SECOND, bytes }
  return { silence, since: request.startedAt, keepAlive, idleMs: time.idleMs }
}

export interface WatchedStream {
  /** @param now milliseconds on the clock of `performance.now()` */
  tick(now: number): void
}

/**
 * Watches open streams for silence. One coarse ticker checks all of them, so that a chunk needs neither a timer nor
 * the clock.
 */
export class SilenceWatch {
  readonly #tickMs: number
  readonly #streams = new Set<WatchedStream>()
  #timer: NodeJS.Timeout | null = null

  constructor(tickMs = TICK_MS) {
    this.#tickMs = tickMs
  }

  add(stream: WatchedStream): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => this.#tick(), this.#tickMs).unref()
  }

  delete(stream: WatchedStream): void {
    this.#streams.delete(stream)
  }

  #tick(): void {
    if (this.#streams.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
    const now = performance.now()
    for (const stream of this.#streams) stream.tick(now)
  }
}
