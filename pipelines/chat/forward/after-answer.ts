/**
 * Ends answers that their client has in full, or no longer waits for: the upstream is read further for the usage that
 * the call owes. See docs/api-rules.md, "Interrupted calls" and "Streams".
 */
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import type { UpstreamFailure } from '../../../src/upstream/client.ts'
import type { Claim } from '../../calls/claim.ts'
import type { PricedCall } from '../select-model.ts'
import type { CallRecord } from './call-record.ts'
import { type Answer, MAX_WHOLE_RESPONSE_BYTES } from './stream-answer.ts'

/** Time for which an upstream is read behind the finish reason, or behind the last event. */
const LATE_USAGE_MS = 2_000
/** Bytes that are read of it. */
export const LATE_USAGE_MAX_BYTES = 262_144
/** Time for which it is read where the call is read on to its end. */
const READ_ON_MS = 30_000
/** The most by which it may be longer. */
const TICK_MS = 250

/** A call whose upstream is read further. */
export interface LeftCall {
  /** Settles the call with the facts known by now. */
  giveUp(): void
}

export class LateUsage {
  readonly #usageMs: number
  readonly #readOnMs: number
  /** When each is given up, on the clock of `performance.now()`. */
  readonly #deadlines = new Map<LeftCall, number>()
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor({ usageMs = LATE_USAGE_MS, readOnMs = READ_ON_MS } = {}) {
    this.#usageMs = usageMs
    this.#readOnMs = readOnMs
  }

  /** Calls `giveUp` when the time is over. Returns false once closed: the call is to be settled at once. */
  add(call: LeftCall, isReadOn = false): boolean {
    if (this.#isClosed) return false
    this.#deadlines.set(call, performance.now() + (isReadOn ? this.#readOnMs : this.#usageMs))
    this.#timer ??= setInterval(() => this.#tick(), Math.min(TICK_MS, this.#usageMs, this.#readOnMs))
    return true
  }

  has(call: LeftCall): boolean {
    return this.#deadlines.has(call)
  }

  /** Removes a call whose upstream has ended. */
  delete(call: LeftCall): void {
    this.#deadlines.delete(call)
  }

  /** Settles every call that still waits; from here on none waits. */
  close(): void {
    this.#isClosed = true
    for (const call of [...this.#deadlines.keys()]) call.giveUp()
    this.#stop()
  }

  /** One coarse ticker for all: the last event of each stream needs no timer. */
  #tick(): void {
    if (this.#deadlines.size === 0) return this.#stop()
    const now = performance.now()
    for (const [call, deadline] of [...this.#deadlines]) if (deadline <= now) call.giveUp()
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}

interface LeftCalls {
  readonly config: () => Pick<ConfigFile, 'after_client_leaves'>
  readonly lateUsage: LateUsage
}

/**
 * Returns how the upstream of a call is read on whose client has left; null where it is to be settled at once.
 * @param isSent any of the request has been sent
 */
export function readOn(
  { config, lateUsage }: LeftCalls,
  call: LeftCall,
  record: CallRecord,
  answer: Answer | null,
  isSent: boolean,
): ReadOn | null {
  const hadAll = answer?.isFinished === true
  const wanted = record.admitted.model.entry.after_client_leaves ?? config().after_client_leaves
  const isToLimit = isSent && wanted === 'read_on'
  if (!isToLimit && !hadAll && answer?.awaitsUsage !== true) return null
  if (!lateUsage.add(call, isToLimit)) return null
  return new ReadOn(call, hadAll, isToLimit ? record.readOutputLimit() : null)
}

/** The rules by which the upstream of a call is read on whose client has left. */
export class ReadOn {
  readonly #call: LeftCall
  /** Tokens of the answer that are read at most, its hidden part not counted; null where only usage is waited for. */
  readonly #maxTokens: number | null
  /** The client has all that the upstream has sent of an answer that may be whole. */
  hadAll: boolean

  constructor(call: LeftCall, hadAll: boolean, maxTokens: number | null) {
    this.#call = call
    this.hadAll = hadAll
    this.#maxTokens = maxTokens
  }

  /** The call is read to its own output limit. */
  get isToLimit(): boolean {
    return this.#maxTokens !== null
  }

  /** Returns the reader of the rest of an answer, which goes nowhere. */
  discardRest(answer: Answer): Answer {
    answer.release?.()
    return new Rest(answer, this)
  }

  /** Takes note of bytes that were read; ends the call where they are enough. */
  noteBytes(answer: Answer, bytes: number): void {
    const isLong = bytes >= (this.isToLimit ? MAX_WHOLE_RESPONSE_BYTES : LATE_USAGE_MAX_BYTES)
    if (isLong || this.#isEnough(answer)) this.#call.giveUp()
  }

  #isEnough(answer: Answer): boolean {
    if (this.#maxTokens === null) return answer.awaitsUsage !== true
    // An answer without an output is read to its end.
    return this.#maxTokens > 0 && estimateOutputTokens(answer.readMeter().characters) >= this.#maxTokens
  }
}

class Rest implements Answer {
  readonly #answer: Answer
  readonly #readOn: ReadOn
  #bytes = 0

  constructor(answer: Answer, readOn: ReadOn) {
    this.#answer = answer
    this.#readOn = readOn
  }

  readMeter(): Metered {
    return this.#answer.readMeter()
  }

  data(bytes: Buffer): void {
    this.#readOn.hadAll = false
    this.#answer.data(bytes)
    this.#bytes += bytes.length
    this.#readOn.noteBytes(this.#answer, this.#bytes)
  }

  end(): void {
    this.#answer.end()
  }

  breakOff(failure: UpstreamFailure): void {
    this.#answer.breakOff(failure)
  }
}

/** The call of a finished stream. */
export interface FinishedCall {
  /** Settles the call, and calls `written` once the journal has that; never where it could not be stored. */
  settleThen(written: () => void): void
  send(bytes: Uint8Array): void
  endUpstream(): void
  endReply(): void
}

/**
 * The end of a stream whose last event has passed: the call is a success, whatever client, upstream and process do from
 * there on. See docs/api-rules.md, "Streams".
 */
export class FinishedStream {
  readonly #call: FinishedCall
  readonly #claim: Claim | undefined
  /** The last event and what follows it, until the call is settled and kept; null where nothing waits. */
  #waiting: Buffer[] | null
  #isSettled = false
  /** The settlement is in the journal. */
  #isWritten = false
  #isUpstreamOver = false

  /** @param bytes those with the last event; valid only during the call */
  constructor(call: FinishedCall, claim: Claim | undefined, bytes: Uint8Array) {
    this.#call = call
    this.#claim = claim
    this.#waiting = [Buffer.from(bytes)]
  }

  /** Sends the last event once the answer is kept and, unless its usage may still come, settled. */
  begin(awaitsUsage: boolean): void {
    if (awaitsUsage) this.#keep()
    else this.#settle(() => this.#keep())
  }

  /** Keeps bytes that come while the last event waits. Returns false where they may go out. */
  holds(bytes: Uint8Array): boolean {
    this.#waiting?.push(Buffer.from(bytes))
    return this.#waiting !== null
  }

  /** Ends the stream: its upstream has ended, or is not waited for any longer. */
  end(): void {
    this.#isUpstreamOver = true
    this.#call.endUpstream()
    if (this.#isSettled) this.#endReply()
    else this.#settle(() => this.#endReply())
  }

  #settle(written: () => void): void {
    this.#isSettled = true
    this.#call.settleThen(() => {
      this.#isWritten = true
      written()
    })
  }

  #keep(): void {
    if (this.#claim === undefined) this.#sendWaiting()
    else void this.#claim.store().then(() => this.#sendWaiting())
  }

  #sendWaiting(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const bytes of waiting) this.#call.send(bytes)
    this.#endReply()
  }

  #endReply(): void {
    if (this.#waiting === null && this.#isUpstreamOver && this.#isWritten) this.#call.endReply()
  }
}

/**
 * Only on the path of built-in tools, a broken stream ends with an error event. The empty line ends an event that
 * broke off. See docs/api-rules.md, "Streams".
 */
const BROKEN_TOOL_STREAM = Buffer.from(
  `\n\ndata: ${JSON.stringify({ error: { message: 'The upstream failed.', type: 'api_error', code: 'upstream_error' } })}\n\ndata: [DONE]\n\n`,
)

/** Returns the last bytes of a stream that broke; null where it just ends. */
export const writeBreakNotice = ({ call, protocol }: PricedCall): Buffer | null =>
  call.builtInTools.length > 0 && protocol === 'chat-completions' ? BROKEN_TOOL_STREAM : null
