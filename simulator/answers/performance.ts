/** Plays one answer on one response, with pace, framing, faults and back-pressure, until the caller leaves. */

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Call, CallLog } from '../calls.ts'
import {
  type Answer,
  type Dialect,
  SimulatedFailure,
  type StreamedAnswer,
  type WholeAnswer,
} from '../dialect.ts'
import { type Fault, isByteFault } from '../directives/faults.ts'
import type { Directives } from '../directives/grammar.ts'
import { BodyWriter } from './body-writer.ts'
import { ARRAY_END, arrayEncoder, type Frame, sseEncoder } from './sse.ts'
import type { Slot, Ticker } from './ticker.ts'

const MAX_FRAMES_PER_TURN = 256
/** A `pause` comes before the next one. */
const TOKENS_BEFORE_PAUSE = 8
const DEFAULT_RETRY_AFTER_SECONDS = 1
const MS_PER_SECOND = 1_000
/**
 * A caller that finds the last bytes and the reset in one poll takes it for a proper close, in libuv at least;
 * so it is given time to read them first. One turn of the loop more is for a caller in the same process.
 */
const BEFORE_RESET_MS = 20
/** Neither a status line nor text. */
const GARBAGE = Buffer.from('\u0000\u0001simulated garbage\r\n\xff\xfe not HTTP at all\r\n\r\n', 'latin1')

export type PerformanceOptions = {
  readonly response: ServerResponse
  readonly dialect: Dialect
  readonly answer: Answer
  readonly directives: Directives
  /** The fault of the directives; null if there is none or its times are used up. */
  readonly fault: Fault | null
  readonly call: Call
  readonly calls: CallLog
  readonly ticker: Ticker
}

/** Begins to play and returns; the record of the call has the end. */
export function perform(options: PerformanceOptions): void {
  const { response } = options
  const start = () => new Performance(options).begin()
  if (response.socket === null) response.once('socket', start)
  else start()
}

class Performance {
  readonly #options: PerformanceOptions
  readonly #socket: Socket
  readonly #answer: Answer
  /** True if the call counts as faulted although its answer ends normally. */
  #faulted: boolean
  #waiting: { slot: Slot; task: () => void } | null = null
  #emittedTokens = 0

  constructor(options: PerformanceOptions) {
    this.#options = options
    this.#socket = options.response.socket as Socket
    this.#answer = this.#answerOrFailure()
    this.#faulted =
      this.#answer !== options.answer || (options.answer.kind === 'whole' && options.answer.faulted === true)
  }

  begin(): void {
    const { fault, response, directives, call, calls } = this.#options
    if (this.#socket.destroyed || fault?.kind === 'hang') return
    if (fault?.kind === 'refuse') {
      calls.close(call, 'faulted')
      this.#socket.destroy()
      return
    }
    response.once('close', () => this.#cancel())
    this.#at((directives.ttft ?? 0) + this.#wholeAnswerMs(), () => this.#open())
  }

  /** Returns the answer, or the failure that a fault replaces it with. */
  #answerOrFailure(): Answer {
    const { fault, dialect, directives, answer } = this.#options
    if (fault?.kind === 'status') return dialect.failure(statusFailure(fault.status, directives))
    if (fault?.kind !== 'stream_error' || answer.kind === 'streamed') return answer
    return { ...dialect.failure(streamFailure()), status: 200 }
  }

  /** Returns the time that a whole answer takes. */
  #wholeAnswerMs(): number {
    if (this.#answer.kind !== 'whole') return 0
    const { tps = 0 } = this.#options.directives
    const spokenMs = tps > 0 ? (this.#answer.tokens * MS_PER_SECOND) / tps : 0
    return spokenMs + (this.#answer.workedMs ?? 0)
  }

  #open(): void {
    const { fault, call, calls } = this.#options
    if (fault?.kind === 'reset_head' || fault?.kind === 'accept_then_cut') {
      calls.close(call, 'faulted')
      this.#socket.resetAndDestroy()
    } else if (fault?.kind === 'garbage') {
      calls.close(call, 'faulted')
      this.#socket.write(GARBAGE)
      this.#socket.destroySoon()
    } else {
      if (this.#answer.kind === 'whole') this.#playWhole(this.#answer)
      else this.#playStream(this.#answer)
    }
  }

  #playWhole(answer: WholeAnswer): void {
    const { response, fault, call } = this.#options
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
    // A truncated body that ends properly cannot announce its length.
    const length = fault?.kind === 'truncate' ? {} : { 'content-length': body.length }
    this.#socket.cork()
    response.writeHead(answer.status, { ...answer.headers, ...length })
    response.flushHeaders()
    call.outputTokens = answer.tokens
    const writer = this.#writer(() => this.#finish(writer))
    if (writer.write(body)) this.#finish(writer)
    this.#socket.uncork()
  }

  #playStream(answer: StreamedAnswer): void {
    const { response, directives } = this.#options
    response.writeHead(200, answer.headers)
    response.flushHeaders()
    const { tps = 0, linger = 0 } = directives
    let { pause = 0 } = directives
    const msPerToken = tps === 0 ? 0 : MS_PER_SECOND / tps
    let beganAtMs = this.#options.ticker.now()
    const isArray = answer.framing === 'array'
    const encode = isArray ? arrayEncoder() : sseEncoder(directives.sse ?? answer.framing ?? [])
    const frames = this.#frames(answer.frames, isArray)
    let held: Frame | null = null

    /** Writes what is due; returns whether it may continue in another turn, rather than wait or end. */
    const writeDue = (): boolean => {
      for (let count = 0; count < MAX_FRAMES_PER_TURN; count += 1) {
        const frame: Frame | undefined = held ?? (frames.next().value as Frame | undefined)
        if (frame === undefined) {
          this.#at(linger, () => this.#finish(writer))
          return false
        }
        if (pause > 0 && frame.tokens > 0 && this.#emittedTokens >= TOKENS_BEFORE_PAUSE) {
          held = frame
          beganAtMs += pause
          this.#at(pause, pump)
          pause = 0
          return false
        }
        const dueMs = beganAtMs + this.#emittedTokens * msPerToken
        if (msPerToken > 0 && frame.tokens > 0 && dueMs > this.#options.ticker.now()) {
          held = frame
          this.#wait(dueMs, pump)
          return false
        }
        held = null
        this.#count(frame)
        if (!writer.write(encode(frame))) return false
      }
      return true
    }
    const pump = (): void => {
      if (writeDue()) setImmediate(pump)
    }
    const writer = this.#writer(pump)
    pump()
  }

  *#frames(frames: Iterator<Frame, void>, isArray: boolean): Iterator<Frame, void> {
    yield* this.#faultyFrames(frames)
    if (isArray) yield ARRAY_END
  }

  /** Applies the fault to the frames. */
  *#faultyFrames(frames: Iterator<Frame, void>): Generator<Frame, void> {
    const { fault, dialect } = this.#options
    let events = 0
    for (let next = frames.next(); next.done !== true; next = frames.next()) {
      const frame = next.value
      if (fault?.kind === 'stream_error' && this.#isFailing(fault.afterTokens, frame)) {
        this.#faulted = true
        const failure = streamFailure()
        yield dialect.failureFrame?.(failure, events) ?? {
          data: String(dialect.failure(failure).body),
          tokens: 0,
        }
        return
      }
      events += 1
      if (fault?.kind === 'no_done' && frame.terminator === true) this.#faulted = true
      else yield frame
    }
  }

  #isFailing(afterTokens: number, frame: Frame): boolean {
    return afterTokens === 0 || this.#emittedTokens + frame.tokens > afterTokens
  }

  #count(frame: Frame): void {
    this.#emittedTokens += frame.tokens
    this.#options.call.outputTokens = this.#emittedTokens
  }

  #writer(onReady: () => void): BodyWriter {
    const { fault, directives, response } = this.#options
    const byteFault = isByteFault(fault) ? fault : null
    return new BodyWriter({
      response,
      pieceBytes: directives.split ?? null,
      stopAfterBytes: byteFault?.afterBytes ?? null,
      tearsChunk: byteFault?.kind === 'cut',
      onReady,
      onStop: () => this.#strike(byteFault?.kind),
    })
  }

  #strike(kind: string | undefined): void {
    const { call, calls, response } = this.#options
    if (kind === 'hang_after') return
    calls.close(call, 'faulted')
    if (kind === 'reset') this.#at(BEFORE_RESET_MS, () => setImmediate(() => this.#socket.resetAndDestroy()))
    else if (kind === 'truncate') response.end()
    else this.#socket.destroySoon()
  }

  #finish(writer: BodyWriter): void {
    const { call, calls } = this.#options
    if (writer.end()) calls.close(call, this.#faulted ? 'faulted' : 'completed')
  }

  #at(afterMs: number, task: () => void): void {
    if (afterMs > 0) this.#wait(this.#options.ticker.now() + afterMs, task)
    else task()
  }

  #wait(atMs: number, task: () => void): void {
    this.#waiting = { slot: this.#options.ticker.schedule(atMs, task), task }
  }

  #cancel(): void {
    if (this.#waiting !== null) this.#options.ticker.cancel(this.#waiting.slot, this.#waiting.task)
    this.#waiting = null
  }
}

function statusFailure(status: number, directives: Directives): SimulatedFailure {
  const seconds = directives.retry_after ?? (status === 429 ? DEFAULT_RETRY_AFTER_SECONDS : null)
  const headers: Record<string, string> = seconds === null ? {} : { 'retry-after': String(seconds) }
  if (status === 429)
    return new SimulatedFailure(429, 'rate_limited', 'Rate limit reached: simulated.', { headers })
  const message =
    status >= 500 ? 'The server had an error: simulated.' : `Simulated failure with status ${status}.`
  return new SimulatedFailure(status, 'simulated', message, { headers })
}

function streamFailure(): SimulatedFailure {
  return new SimulatedFailure(500, 'simulated', 'The server had an error while it was answering: simulated.')
}
