/**
 * The three forms of an upstream's answer: a stream, a whole body, an error. Each takes the bytes of one attempt and
 * reports to its call what to send and how it ended. Nothing here waits: after the first byte all is synchronous.
 */
import { Buffer } from 'node:buffer'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { HeaderList } from '../../../src/http/handler.ts'
import { EVENT_STREAM_TYPE, withEventStreamFraming } from '../../../src/protocols/aws/bedrock-stream.ts'
import type {
  AnswerStream,
  ChatCall,
  Metered,
  ProtocolAdapter,
  WholeAnswer as ReadAnswer,
} from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders, UpstreamFailure } from '../../../src/upstream/client.ts'
import { type Ending, endingOf, NOTHING_METERED } from './call-record.ts'
import { Collected } from './collected.ts'
import { ErrorAnswer } from './error-answer.ts'
import { LATE_USAGE_MAX_BYTES } from './late-usage.ts'
import { readWhole } from './read-whole.ts'
import type { SilenceTimes, SilenceWatch, WatchedStream } from './silence-watch.ts'
import {
  type AttemptFailure,
  brokenConnection,
  endedWithoutAnswer,
  NO_ANSWER,
  tooLargeAnswer,
  unusableAnswer,
} from './upstream-error.ts'

/** The call of an answer, which sends on what the answer makes. */
export interface AnswerReceiver {
  /** Sets the head, which goes out with the next bytes; no other attempt follows. */
  begin(headers: HeaderList): void
  /** Called when the answer itself begins, or an error in its place: its first bytes go out next. */
  firstByte(isError: boolean): void
  send(bytes: Uint8Array): void
  /** Returns true while the client has not taken all that was sent. */
  isPaused(): boolean
  /** Returns the bytes without the secrets of the channel. */
  hideSecrets(bytes: Buffer): Buffer
  finish(ending: Ending): void
  /** Sends the whole answer and ends it. */
  finishWhole(headers: HeaderList, body: Buffer): void
  /** Returns the failure of an error event. */
  erred(event: Buffer): AttemptFailure
  /**
   * Called with an error that came first: makes another attempt in place of this one. Returns false where none is left,
   * or none would do better: the event is the answer then.
   */
  failsOver(failure: AttemptFailure): boolean
  /** Called when nothing went out yet: makes another attempt, or replies with this failure. */
  failed(failure: AttemptFailure): void
}

/** Handler of an upstream's answer, called piece by piece. */
export interface Answer {
  data(bytes: Buffer): void
  end(): void
  broken(failure: UpstreamFailure): void
  metered(): Metered
  /** Called when the call is over, or continues with another attempt. */
  release?(): void
  /** Returns a reader of the rest for a client that has left; null where the rest adds nothing. */
  left?(onLearned: () => void): Answer | null
}

/** Limit of the bytes before the first event: comments that keep the connection alive. */
const MAX_HELD_BYTES = 65_536
/** The largest unstreamed response. */
export const MAX_WHOLE_RESPONSE_BYTES = 64 * 1024 * 1024
const EVENT_STREAM = 'text/event-stream'
const COMMENT = Buffer.from(': keep-alive\n\n')
const WHITE_SPACE = Buffer.from('\n')
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

export const isCompressed = ({ contentEncoding }: ResponseHeaders): boolean =>
  contentEncoding != null && contentEncoding.toLowerCase() !== 'identity'

/**
 * Returns true for an answer to be read as a stream: the client requested one, and the upstream did not answer in one
 * piece.
 */
function isStreamed(contentType: string, asked: ChatCall, { streamTypes }: ProtocolAdapter): boolean {
  if (!asked.stream) return false
  const type = contentType.toLowerCase()
  return type.includes(EVENT_STREAM) || (streamTypes?.(asked).some((known) => type.includes(known)) ?? false)
}

/** Nothing is sent yet. */
const WAITING = 0
/** Only keep-alive bytes are sent: no other attempt follows. */
const SILENT = 1
const FLOWING = 2

export interface Waiting {
  readonly silence: SilenceWatch
  /** Since when the client waits, on the clock of `performance.now()`. */
  readonly since: number
}

export class StreamAnswer implements Answer, WatchedStream {
  // The fields that every chunk touches are first.
  readonly #call: AnswerReceiver
  readonly #meter: AnswerStream
  #state: typeof WAITING | typeof SILENT | typeof FLOWING = WAITING
  /** Bytes went out since the last tick. */
  #hasSent = false

  readonly #headers: HeaderList
  /** Bytes allowed between two events of an event stream, or two elements of a JSON array. */
  readonly #filler: Buffer
  readonly #silence: SilenceWatch
  #quietSince: number
  #hasFilled = false
  #held: Buffer[] = []
  #heldBytes = 0

  constructor(call: AnswerReceiver, contentType: string, stream: AnswerStream, { silence, since }: Waiting) {
    this.#call = call
    this.#headers = [
      ['content-type', contentType],
      ['cache-control', 'no-cache'],
    ]
    this.#filler = contentType.toLowerCase().includes(EVENT_STREAM) ? COMMENT : WHITE_SPACE
    this.#meter = stream
    this.#silence = silence
    this.#quietSince = since
    silence.add(this)
  }

  metered(): Metered {
    return this.#meter
  }

  data(bytes: Buffer): void {
    const out = this.#meter.push(bytes)
    if (this.#state === FLOWING) {
      if (out === null) return
      this.#hasSent = true
      this.#send(out)
      return
    }
    if (this.#state === SILENT) return this.#flow(out)
    // The status waits for the first event of an answer: what ends or errs before that is a failed attempt.
    const { firstError, isAnswer, usage, hasBegun, isComplete } = this.#meter
    if (firstError !== null && this.#endsAttempt(firstError)) return
    const begins = firstError !== null || isAnswer || usage !== null || (hasBegun && !isComplete)
    if (!begins && this.#heldBytes < MAX_HELD_BYTES) return this.#hold(out)
    this.#begin(out)
  }

  tick(now: number, { firstMs, laterMs }: SilenceTimes): void {
    // A client that does not read is not kept waiting by the upstream.
    if (this.#hasSent || this.#call.isPaused()) {
      this.#hasSent = false
      this.#quietSince = now
      return
    }
    const isWaiting = this.#state === WAITING
    if (now - this.#quietSince < (isWaiting ? firstMs : laterMs)) return
    if (isWaiting) this.#begin(null)
    else if (!this.#meter.isBetweenEvents) return
    this.#quietSince = now
    if (!this.#meter.isBetweenEvents) return
    this.#hasFilled = true
    this.#call.send(this.#filler)
  }

  release(): void {
    this.#silence.delete(this)
  }

  left(onLearned: () => void): Answer | null {
    return this.#meter.awaitsUsage ? new LeftStream(this.#meter, onLearned) : null
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
    const isFirst = this.#state === SILENT
    this.#state = FLOWING
    this.#hasSent = true
    if (isFirst) this.#call.firstByte(this.#meter.firstError !== null)
    // A byte order mark is one at the beginning alone.
    const isMarked = isFirst && this.#hasFilled && out.indexOf(BYTE_ORDER_MARK) === 0
    this.#send(isMarked ? out.subarray(BYTE_ORDER_MARK.length) : out)
  }

  /** Sends bytes; an upstream's error passes unchanged except for the channel's secrets. */
  #send(out: Buffer): void {
    const { laterError, firstError } = this.#meter
    this.#call.send(laterError === null && firstError === null ? out : this.#call.hideSecrets(out))
  }

  end(): void {
    const tail = this.#meter.end()
    const { isAnswer, firstError } = this.#meter
    if (this.#state !== WAITING) this.#flow(tail)
    else if (firstError !== null && this.#endsAttempt(firstError)) return
    // Nothing was answered or sent: another channel may do better.
    else if (firstError === null && !isAnswer) return this.#call.failed(endedWithoutAnswer())
    else this.#begin(tail)
    this.#call.finish(this.#ending() ?? failedEnding(INCOMPLETE))
  }

  /** Returns whether the attempt ends with an error that came first: then nothing of it goes out. */
  #endsAttempt(event: Buffer): boolean {
    const failure = this.#call.erred(event)
    if (this.#call.failsOver(failure)) return true
    if (failure.hidesEvent !== true) return false
    this.#call.failed(failure)
    return true
  }

  /**
   * Returns the ending that the stream itself reports; null where it reports none. An error takes precedence over an
   * end mark.
   */
  #ending(): Ending | null {
    const { laterError, firstError, isAnswer, isComplete } = this.#meter
    const error = laterError ?? firstError
    if (error !== null) return endingOf(this.#call.erred(error))
    if (!isComplete) return null
    return isAnswer ? { kind: 'success' } : failedEnding(NO_ANSWER)
  }

  broken(failure: UpstreamFailure): void {
    const broken = brokenConnection(failure)
    if (this.#state === WAITING) return this.#call.failed(broken)
    this.#flow(this.#meter.end())
    const otherwise: Ending = broken.isTimeout
      ? { kind: 'timeout', message: broken.message }
      : failedEnding(broken.message)
    this.#call.finish(this.#ending() ?? otherwise)
  }
}

/** The rest of a stream whose client left: read for its usage, not forwarded. */
class LeftStream implements Answer {
  readonly #meter: AnswerStream
  readonly #onLearned: () => void
  #bytesLeft = LATE_USAGE_MAX_BYTES

  /** @param onLearned called when usage has come, or will not come; may be called again */
  constructor(meter: AnswerStream, onLearned: () => void) {
    this.#meter = meter
    this.#onLearned = onLearned
  }

  metered(): Metered {
    return this.#meter
  }

  data(bytes: Buffer): void {
    this.#bytesLeft -= bytes.length
    this.#meter.push(bytes)
    if (this.#bytesLeft <= 0 || !this.#meter.awaitsUsage) this.#onLearned()
  }

  end(): void {
    this.#meter.end()
    this.#onLearned()
  }

  broken(): void {
    this.end()
  }
}

const INCOMPLETE = 'The upstream ended the stream before it was complete.'

const failedEnding = (message: string): Ending => ({ kind: 'failed', code: 'upstream_error', message })

const saidInAll = (characters: number): Metered => ({
  ...NOTHING_METERED,
  characters,
  charactersSinceUsage: characters,
})

export class WholeAnswer implements Answer {
  readonly #call: AnswerReceiver
  readonly #contentType: string
  readonly #read: (body: Buffer) => ReadAnswer
  readonly #body = new Collected()
  #metered = NOTHING_METERED

  constructor(call: AnswerReceiver, contentType: string, read: (body: Buffer) => ReadAnswer) {
    this.#call = call
    this.#contentType = contentType
    this.#read = read
  }

  metered(): Metered {
    return this.#metered
  }

  data(bytes: Buffer): void {
    this.#body.add(bytes)
    if (this.#body.length <= MAX_WHOLE_RESPONSE_BYTES) return
    // Too large to be read: it is charged by its bytes, up to the most that one call can use.
    this.#metered = saidInAll(this.#body.length)
    this.#call.failed(tooLargeAnswer())
  }

  end(): void {
    const { body, metered, isAnswer } = this.#read(this.#body.all())
    // As in a stream: nothing is sent, another channel may do better, and nothing is charged.
    if (!isAnswer) return this.#call.failed(unusableAnswer(body))
    this.#metered = metered
    this.#call.finishWhole([['content-type', this.#contentType]], body)
  }

  broken(failure: UpstreamFailure): void {
    const broken = brokenConnection(failure)
    // The upstream has worked until the time was over.
    if (broken.isTimeout) this.#metered = this.#read(this.#body.all()).metered
    this.#call.failed(broken)
  }
}

/** Status and headers of an upstream's answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly adapter: ProtocolAdapter
  readonly route: Route
  readonly waiting: Waiting
}

/** Chooses the reader of the upstream's answer to `asked`; returns null for an answer that cannot be read. */
export function answerTo(asked: ChatCall, call: AnswerReceiver, head: AnswerHead): Answer | null {
  const { status, headers, adapter, route, waiting } = head
  const { provider } = route.channel
  if (status >= 300 || status < 200) return new ErrorAnswer(call, head)
  if (isCompressed(headers)) return null
  const contentType = headers.contentType ?? 'application/json'
  if (asked.stream && contentType.toLowerCase().startsWith(EVENT_STREAM_TYPE)) {
    const stream = withEventStreamFraming(adapter.openStream(asked, provider))
    return new StreamAnswer(call, adapter.streamContentType ?? EVENT_STREAM, stream, waiting)
  }
  if (!isStreamed(contentType, asked, adapter)) {
    const type = asked.stream ? (adapter.streamContentType ?? EVENT_STREAM) : contentType
    return new WholeAnswer(call, type, (body) => readWhole(asked, body, head))
  }
  const streamType = adapter.streamContentType ?? contentType
  return new StreamAnswer(call, streamType, adapter.openStream(asked, provider), waiting)
}
