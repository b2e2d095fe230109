/**
 * Reads an upstream further though its client has left, for what the call owes. One instance a process, so that a
 * process that ends can settle all of them at once. See docs/api-rules.md, "Interrupted calls".
 */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import type { UpstreamFailure } from '../../../src/upstream/client.ts'
import { type Answer, MAX_WHOLE_RESPONSE_BYTES } from './answers.ts'

/** Time for which an upstream is read behind the finish reason, or behind the last event. */
export const LATE_USAGE_MS = 2_000
/** Bytes that are read of it. */
export const LATE_USAGE_MAX_BYTES = 262_144
/** Time for which it is read where the call is read on to its end. */
export const READ_ON_MS = 30_000
/** By so much it may be longer. */
const TICK_MS = 250

/** A call whose upstream is read further. */
export interface LeftCall {
  /** Settles the call with the facts known by now. */
  giveUp(): void
  /** Called when the upstream sends more than the client has had. */
  goesOn(): void
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

export interface LeftBounds {
  readonly maxBytes: number
  /** Of what the answer says; its hidden part is not counted. */
  readonly maxTokens: number
  /** Nothing but the usage is waited for. */
  readonly isUsageOnly: boolean
}

/** Bounds where only usage is waited for. */
export const FOR_USAGE: LeftBounds = {
  maxBytes: LATE_USAGE_MAX_BYTES,
  maxTokens: Number.POSITIVE_INFINITY,
  isUsageOnly: true,
}

/** Returns the bounds of a call that is read on to its own output limit, tokens. */
export const toItsLimit = (maxTokens: number): LeftBounds => ({
  maxBytes: MAX_WHOLE_RESPONSE_BYTES,
  maxTokens,
  isUsageOnly: false,
})

/** The rest of an answer whose client has left: what it would send goes nowhere. */
export class LeftAnswer implements Answer {
  readonly #answer: Answer
  readonly #bounds: LeftBounds
  readonly #call: LeftCall
  #bytesLeft: number

  constructor(answer: Answer, bounds: LeftBounds, call: LeftCall) {
    this.#answer = answer
    this.#bounds = bounds
    this.#bytesLeft = bounds.maxBytes
    this.#call = call
  }

  metered(): Metered {
    return this.#answer.metered()
  }

  data(bytes: Buffer): void {
    this.#call.goesOn()
    this.#answer.data(bytes)
    this.#bytesLeft -= bytes.length
    if (this.#bytesLeft <= 0 || this.#isEnough()) this.#call.giveUp()
  }

  #isEnough(): boolean {
    const { isUsageOnly, maxTokens } = this.#bounds
    if (isUsageOnly) return this.#answer.awaitsUsage !== true
    return estimateOutputTokens(this.metered().characters) >= maxTokens
  }

  end(): void {
    this.#answer.end()
  }

  broken(failure: UpstreamFailure): void {
    this.#answer.broken(failure)
  }
}
