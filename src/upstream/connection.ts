import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Exchange } from './exchange.ts'
import type { UpstreamFailureKind } from './failure.ts'
import { ABSENT } from './field-scanner.ts'
import {
  BODY_SLICE_BYTES,
  DEFAULT_MAX_BODY_BYTES,
  JOINED_REQUEST_BYTES,
  KEEP_ALIVE_MARGIN_MS,
} from './limits.ts'
import type { OriginPool } from './origin-pool.ts'
import { ResponseParser } from './response-parser.ts'
import { classifyConnectError, openSocket, type SocketSettings } from './socket.ts'

/** What connections of one client share. */
export interface ConnectionHost {
  /** Coarse clock, milliseconds; moved on by the client's timer. */
  readonly now: number
  readonly readBuffer: Buffer
  /** Where small requests are put together; replaced when the kernel did not take one at once. */
  writeBuffer: Buffer
  readonly connectTimeoutMs: number
  readonly idleConnectionMs: number
  readonly secureContext: SocketSettings['secureContext']
  /** A connection can serve another call. */
  release(connection: Connection): void
  /** A connection is gone. */
  forget(connection: Connection): void
}

const CONNECTING = 0
const BUSY = 1
const IDLE = 2
const CLOSED = 3

/** One socket: connects, then serves one exchange at a time. */
export class Connection {
  readonly pool: OriginPool
  exchange: Exchange | null
  /** Places in the pool's list of unused connections and in the client's table. */
  older: Connection | null = null
  newer: Connection | null = null
  slot = ABSENT

  readonly #host: ConnectionHost
  readonly #socket: Socket
  readonly #parser = new ResponseParser()
  #state = CONNECTING
  #tcpEstablished = false
  /** When connecting, or being unused, ends. */
  #expiresAt: number
  /** Last time the exchange moved: request taken, head or data received. */
  #movedAt = 0
  /** Something came since the clock last looked: spares the clock a call for every read. */
  #heard = false
  #bodyOffset = 0
  #requestWritten = false
  #readingPaused = false

  constructor(host: ConnectionHost, pool: OriginPool, exchange: Exchange) {
    this.#host = host
    this.pool = pool
    this.exchange = exchange
    exchange.connection = this
    this.#expiresAt = host.now + host.connectTimeoutMs
    this.#socket = openSocket(pool.origin, {
      buffer: host.readBuffer,
      secureContext: host.secureContext,
      session: pool.session,
      onBytes: (bytes) => this.#onBytes(bytes),
    })
    this.#listen()
  }

  /** Puts an exchange on an unused connection. @returns false when it proved dead before a byte was sent */
  reuse(exchange: Exchange): boolean {
    if (this.#socket.destroyed || this.#socket.errored !== null) {
      this.close()
      return false
    }
    this.exchange = exchange
    exchange.connection = this
    exchange.reused = true
    const { request } = exchange
    this.#begin(exchange)
    if (this.#socket.errored === null || this.pool.origin.tls) return true
    // The very first write was refused by the kernel: not a byte went out, another connection may take the call.
    this.exchange = null
    exchange.request = request
    exchange.connection = null
    exchange.sent = false
    exchange.reused = false
    this.close()
    return false
  }

  pauseReading(): void {
    if (this.#state !== BUSY || this.#readingPaused) return
    this.#readingPaused = true
    this.#socket.pause()
  }

  resumeReading(): void {
    if (!this.#readingPaused || this.#state === CLOSED) return
    this.#readingPaused = false
    this.#movedAt = this.#host.now
    this.#socket.resume()
  }

  /** Closes the socket at once, telling nobody but the client. */
  close(): void {
    if (this.#state === CLOSED) return
    if (this.#state === IDLE) this.pool.remove(this)
    this.#state = CLOSED
    this.#socket.destroy()
    this.#host.forget(this)
  }

  /** Closes, and reports to the exchange if there is one. */
  fail(kind: UpstreamFailureKind, detail: string, cause?: unknown): void {
    const { exchange } = this
    this.close()
    exchange?.fail(kind, detail, cause)
  }

  /** Called by the client's timer. */
  check(now: number): void {
    if (this.#state === IDLE) {
      if (now >= this.#expiresAt) this.close()
      return
    }
    const exchange = this.exchange!
    if (now >= exchange.deadlineAt) this.fail('deadline', 'the exchange took too long')
    else if (this.#state === CONNECTING) {
      if (now >= this.#expiresAt) this.fail('connect_timeout', 'connecting took too long')
    } else if (this.#heard || (exchange.headReceived && this.#readingPaused)) {
      this.#heard = false
      this.#movedAt = now
    } else if (exchange.headReceived) {
      if (now - this.#movedAt >= exchange.idleTimeoutMs) this.fail('idle_timeout', 'the body stopped coming')
    } else if (now - this.#movedAt >= exchange.headTimeoutMs) {
      this.fail('head_timeout', 'no response head came')
    }
  }

  #listen(): void {
    const socket = this.#socket
    const { tls } = this.pool.origin
    socket.on('connect', () => {
      this.#tcpEstablished = true
      if (!tls) this.#onUsable()
    })
    if (tls) {
      socket.on('secureConnect', () => this.#onUsable())
      ;(socket as TLSSocket).on('session', (session) => {
        this.pool.session = session
      })
    }
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error) => this.#onError(error))
    socket.on('close', () => this.fail('reset', 'the connection broke'))
  }

  #onUsable(): void {
    const { exchange } = this
    if (this.#state !== CONNECTING || exchange === null) return
    this.#begin(exchange)
    if (exchange.paused) this.pauseReading()
  }

  #begin(exchange: Exchange): void {
    const { head, body, maxBodyBytes } = exchange.request!
    this.#state = BUSY
    this.#movedAt = this.#host.now
    this.#heard = false
    this.#bodyOffset = 0
    this.#parser.start(head.startsWith('HEAD '), maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES)
    exchange.sent = true
    if (body === null || body.length === 0) {
      this.#socket.write(head, 'latin1')
      this.#endRequest(exchange)
    } else if (head.length + body.length <= JOINED_REQUEST_BYTES) {
      this.#writeJoined(head, body)
      this.#endRequest(exchange)
    } else {
      this.#requestWritten = false
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#writeSlice(exchange, body)
      this.#socket.uncork()
    }
  }

  #endRequest(exchange: Exchange): void {
    this.#requestWritten = true
    exchange.request = null
  }

  #writeJoined(head: string, body: Uint8Array): void {
    const buffer = this.#host.writeBuffer
    const headBytes = buffer.write(head, 0, 'latin1')
    buffer.set(body, headBytes)
    this.#socket.write(buffer.subarray(0, headBytes + body.length))
    // Not taken at once: the kernel's queue still points into the buffer, so that the next request needs another.
    if (this.#socket.writableLength > 0) this.#host.writeBuffer = Buffer.allocUnsafeSlow(JOINED_REQUEST_BYTES)
  }

  #writeSlice(exchange: Exchange, body: Uint8Array): void {
    const from = this.#bodyOffset
    const to = Math.min(body.length, from + BODY_SLICE_BYTES)
    this.#socket.write(body.subarray(from, to), (error) => {
      if (error || this.exchange !== exchange) return
      this.#movedAt = this.#host.now
      this.#bodyOffset = to
      if (to === body.length) this.#endRequest(exchange)
      else this.#writeSlice(exchange, body)
    })
  }

  #onBytes(bytes: number): void {
    const { exchange } = this
    if (exchange === null || this.#state !== BUSY) {
      // Bytes nobody asked for: were the connection kept, the next call would take them for its answer.
      this.close()
      return
    }
    const parser = this.#parser
    const buffer = this.#host.readBuffer
    parser.read(buffer, 0, bytes)
    try {
      if (parser.headReady) {
        exchange.headReceived = true
        this.#heard = true
        const headers = parser.headers!
        parser.headers = null
        exchange.handler.onHead(parser.status, headers)
        if (this.exchange !== exchange) return
      }
      if (parser.dataTo > parser.dataFrom) {
        this.#heard = true
        exchange.handler.onData(buffer.subarray(parser.dataFrom, parser.dataTo))
        if (this.exchange !== exchange) return
      }
    } catch (error) {
      exchange.failThrown(error)
      return
    }
    if (parser.fault !== null) this.fail(parser.fault.kind, parser.fault.detail)
    // A full buffer may mean that more is waiting in the kernel: not to be seen by the next call.
    else if (parser.done) this.#finish(exchange, parser.rest === bytes && bytes < buffer.length)
  }

  #finish(exchange: Exchange, clean: boolean): void {
    exchange.leave()
    const whole = this.#requestWritten && this.#socket.writableLength === 0
    if (clean && whole && this.#parser.reusable && this.#becomeIdle()) this.#host.release(this)
    else this.close()
    exchange.end()
  }

  #becomeIdle(): boolean {
    const seconds = this.#parser.keepAliveSeconds
    const { idleConnectionMs, now } = this.#host
    const keptMs =
      seconds === ABSENT
        ? idleConnectionMs
        : Math.min(idleConnectionMs, seconds * 1000 - KEEP_ALIVE_MARGIN_MS)
    if (keptMs <= 0 || this.#socket.destroyed) return false
    this.#expiresAt = now + keptMs
    this.#state = IDLE
    if (this.#readingPaused) {
      this.#readingPaused = false
      this.#socket.resume()
    }
    return true
  }

  #onEnd(): void {
    const { exchange } = this
    if (exchange === null || this.#state === IDLE) {
      this.close()
      return
    }
    if (this.#state === CONNECTING) {
      this.fail(this.#tcpEstablished ? 'tls' : 'connect', 'connection closed while connecting')
      return
    }
    if (this.#isReset()) {
      this.fail('reset', 'the connection broke')
      return
    }
    const parser = this.#parser
    parser.end()
    if (parser.fault !== null) this.fail(parser.fault.kind, parser.fault.detail)
    else this.#finish(exchange, false)
  }

  /**
   * A reset that arrives together with data is reported as an orderly end: the event loop library looks no further
   * than the hang-up. A body that ends by close would pass for whole. Writing nothing asks the kernel; it answers at
   * once when the connection is broken.
   */
  #isReset(): boolean {
    if (this.#socket.errored === null && this.#socket.writable) this.#socket.write('')
    return this.#socket.errored !== null
  }

  #onError(error: Error): void {
    if (this.#state === CONNECTING) {
      this.fail(classifyConnectError(error, this.#tcpEstablished), error.message, error)
    } else this.fail('reset', error.message, error)
  }
}
