/** One call to an upstream, whichever connection serves it. */
import { UpstreamFailure, type UpstreamFailureKind } from '../failure.ts'
import type { RequestHead } from '../request/head.ts'
import type { ResponseHeaders } from '../response/headers.ts'
import type { Origin } from './origin.ts'

export interface UpstreamRequest {
  readonly origin: Origin
  /** Made by `renderHead` or `finishHead`. */
  readonly head: RequestHead
  /** As long as the head's content-length says. Must not change until the call is over. */
  readonly body: Uint8Array | null
  /** From `send` to the last byte of the response. */
  readonly deadlineMs: number
  /** From the moment the request was taken by the kernel to the response head; absent: only the deadline counts. */
  readonly headTimeoutMs?: number
  /** Between two pieces of the body, while not paused; absent: only the deadline counts. */
  readonly idleTimeoutMs?: number
  /** Bound of the decoded body; `DEFAULT_MAX_BODY_BYTES` when absent. */
  readonly maxBodyBytes?: number
  /** Opens a new connection: a kept one may have been closed by the server just now. */
  readonly onFreshConnection?: boolean
}

/**
 * Receives what a call brings. Never called from inside `send`, nor after `onEnd`, `onError` or `abort`.
 *
 * A handler that throws ends its own call: the connection is closed and `onError` is called with the kind `closed`
 * (unless the call was over already).
 */
export interface UpstreamHandler {
  /** The final response's status and fields; once. */
  onHead(status: number, headers: ResponseHeaders): void
  /**
   * Body bytes, decoded from chunked encoding, all that one read brought in one piece. They lie in a buffer shared by
   * all connections: valid only during the call, to be copied or written on before returning.
   */
  onData(bytes: Uint8Array): void
  onEnd(): void
  onError(failure: UpstreamFailure): void
}

export interface UpstreamCall {
  /**
   * Stops reading from the connection, so that the upstream in the end stops too. What was read already (at most one
   * read buffer, or the TLS records in it) is still delivered, and so are an end or a failure.
   */
  pause(): void
  resume(): void
  /** Nothing is read at the moment. */
  readonly paused: boolean
  /** Whether any of the request has been handed to the network. */
  readonly sent: boolean
  /** Closes the connection at once. No handler is called afterwards. Nothing happens when the call is over. */
  abort(): void
}

/** Counters shared by the parts of a client. */
export interface Counters {
  /** Sockets, connecting ones included. */
  open: number
  idle: number
  /** Calls neither ended, failed nor aborted. */
  inFlight: number
  /** Connections ever opened; calls ever put on a kept one. */
  opened: number
  reused: number
  /** Exceptions thrown by handlers. */
  handlerErrors: number
}

/** What a call needs of the connection that serves it. */
interface ServingConnection {
  call: ActiveCall | null
  pauseReading(): void
  resumeReading(): void
  /** Closes the socket at once, and calls no handler. */
  close(): void
}

/** One call: its request until that is written, its handler, and how far it has come. */
export class ActiveCall implements UpstreamCall {
  readonly handler: UpstreamHandler
  readonly deadlineAt: number
  readonly headTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Released when the answer begins: a stream must not hold its request's body. */
  request: UpstreamRequest | null
  connection: ServingConnection | null = null
  sent = false
  headReceived = false
  reused = false
  /** Failed attempts to connect for it. */
  connectRetries = 0
  paused = false
  over = false
  readonly #counters: Counters
  readonly #onHandlerError: (error: unknown) => void

  constructor(
    request: UpstreamRequest,
    handler: UpstreamHandler,
    now: number,
    counters: Counters,
    onHandlerError: (error: unknown) => void,
  ) {
    this.request = request
    this.handler = handler
    this.deadlineAt = now + request.deadlineMs
    this.headTimeoutMs = request.headTimeoutMs ?? request.deadlineMs
    this.idleTimeoutMs = request.idleTimeoutMs ?? request.deadlineMs
    this.#counters = counters
    this.#onHandlerError = onHandlerError
    counters.inFlight++
  }

  pause(): void {
    if (this.over || this.paused) return
    this.paused = true
    this.connection?.pauseReading()
  }

  resume(): void {
    if (this.over || !this.paused) return
    this.paused = false
    this.connection?.resumeReading()
  }

  abort(): void {
    if (this.over) return
    const { connection } = this
    this.leave()
    connection?.close()
  }

  /** Ends the bookkeeping: from here on the call is over and has no connection. */
  leave(): void {
    this.over = true
    this.#counters.inFlight--
    this.request = null
    if (this.connection !== null) this.connection.call = null
    this.connection = null
  }

  /** Reports an orderly end of a call that has left its connection. */
  end(): void {
    try {
      this.handler.onEnd()
    } catch (error) {
      this.#noteThrown(error)
    }
  }

  fail(kind: UpstreamFailureKind, detail: string, cause?: unknown): void {
    if (this.over) return
    this.leave()
    const { sent, headReceived, reused } = this
    try {
      this.handler.onError(new UpstreamFailure(kind, detail, { sent, headReceived, reused, cause }))
    } catch (error) {
      this.#noteThrown(error)
    }
  }

  /** The handler threw in the middle of a call. */
  failThrown(error: unknown): void {
    this.#noteThrown(error)
    this.connection?.close()
    this.fail('closed', 'a handler threw', error)
  }

  #noteThrown(error: unknown): void {
    this.#counters.handlerErrors++
    this.#onHandlerError(error)
  }
}
