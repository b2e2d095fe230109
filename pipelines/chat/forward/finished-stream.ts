/**
 * The end of a stream whose last event has passed: the call is a success, whatever client, upstream and process do from
 * there on. See docs/api-rules.md, "Streams".
 */
import { Buffer } from 'node:buffer'
import type { Claim } from '../../calls/claim.ts'

/** The call of a finished stream. */
export interface FinishedCall {
  /** Settles the call, and calls `written` once the journal has that; never where it could not be stored. */
  settleThen(written: () => void): void
  send(bytes: Uint8Array): void
  endUpstream(): void
  endReply(): void
}

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
