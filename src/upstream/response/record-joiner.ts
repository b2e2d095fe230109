import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Turn } from '../connection/turn.ts'
import { READ_BUFFER_BYTES } from '../limits.ts'

/** Receives the pieces: a connection. */
export interface RecordReceiver {
  /** Kept by the joiner: several records came in one read lately. */
  inBurst: boolean
  /** @param more further bytes of the same read follow at once. The bytes are valid only during the call. */
  receive(buffer: Buffer, bytes: number, more: boolean): void
}

/** Two records of one connection less than this apart came in one read of the network. */
const SAME_READ_MS = 0.05

/**
 * A TLS socket reports each record by itself, though one read of the network may bring many (a stream sends one a
 * token). A single record is delivered at once. Records that follow one another closely are gathered
 * and delivered as one piece: when another connection has its turn, when the buffer is full, or at the end of this
 * turn of the event loop. To wait for that end costs more than a small call's whole parsing, so only bursts pay it.
 */
export class RecordJoiner {
  /** One buffer serves all connections. */
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES)
  #receiver: RecordReceiver | null = null
  #bytes = 0
  #records = 0
  #last: RecordReceiver | null = null
  #lastAt = 0
  #flushScheduled = false
  readonly #turn: Turn
  readonly #endOfTurn = (): void => {
    this.#flushScheduled = false
    this.flush()
  }

  constructor(turn: Turn) {
    this.#turn = turn
  }

  add(receiver: RecordReceiver, source: Buffer, bytes: number): void {
    if (!receiver.inBurst) {
      if (receiver !== this.#last || performance.now() - this.#lastAt > SAME_READ_MS) {
        receiver.receive(source, bytes, false)
        this.#last = receiver
        this.#lastAt = performance.now()
        return
      }
      receiver.inBurst = true
    }
    this.#gather(receiver, source, bytes)
  }

  /** Delivers the gathered records. */
  flush(): void {
    if (this.#receiver !== null) this.#deliver(false)
  }

  /** Forgets a connection that is closed. */
  drop(receiver: RecordReceiver): void {
    if (this.#last === receiver) this.#last = null
    if (this.#receiver !== receiver) return
    this.#receiver = null
    this.#bytes = 0
    this.#records = 0
  }

  #gather(receiver: RecordReceiver, source: Buffer, bytes: number): void {
    if (this.#receiver !== receiver) this.flush()
    else if (this.#bytes + bytes > this.#buffer.length) this.#deliver(true)
    source.copy(this.#buffer, this.#bytes, 0, bytes)
    this.#bytes += bytes
    this.#records++
    this.#receiver = receiver
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    this.#turn.runAtEnd(this.#endOfTurn)
  }

  #deliver(more: boolean): void {
    const receiver = this.#receiver!
    const bytes = this.#bytes
    if (this.#records === 1) receiver.inBurst = false
    this.#receiver = null
    this.#bytes = 0
    this.#records = 0
    receiver.receive(this.#buffer, bytes, more)
  }
}
