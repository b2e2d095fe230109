import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { UpstreamFailureKind } from '../failure.ts'
import { DEFAULT_MAX_BODY_BYTES, KEEP_ALIVE_MARGIN_MS, MAX_CONNECT_RETRIES } from '../limits.ts'
import { RequestWriter, type WriteBuffer } from '../request/writer.ts'
import { ABSENT } from '../response/field-scanner.ts'
import { ResponseParser } from '../response/parser.ts'
import type { RecordJoiner, RecordReceiver } from '../response/record-joiner.ts'
import type { ActiveCall } from './active-call.ts'
import type { OriginPool } from './origin-pool.ts'
import type { ReservedDescriptors } from './reserved-descriptors.ts'
import {
  classifyConnectError,
  describeConnectError,
  isDescriptorLimit,
  openSocket,
  type SocketSettings,
} from './socket.ts'
import type { Turn } from './turn.ts'

/** Shared by the connections of one client. */
export interface ConnectionHost {
  /** Coarse clock in milliseconds, set by the client's timer. */
  readonly now: number
  readonly readBuffer: Buffer
  readonly writeBuffer: WriteBuffer
  /** Puts the records of TLS connections together. */
  readonly joiner: RecordJoiner
  readonly turn: Turn
  readonly connectTimeoutMs: number
  readonly idleConnectionMs: number
  readonly secureContext: SocketSettings['secureContext']
  readonly reservedDescriptors: ReservedDescriptors
  /** Called when the connection can serve another call. */
  release(connection: Connection): void
  /** Finds a connection for a call of which nothing was sent. */
  place(call: ActiveCall): void
  /** Called once when the connection is closed. */
  remove(connection: Connection): void
}

const CONNECTING = 0
/** Has a call of which nothing was written yet. */
const ASSIGNED = 1
const BUSY = 2
const IDLE = 3
const CLOSED = 4

/** One socket: connects, then serves one call at a time. */
export class Connection implements RecordReceiver {
  // What every read touches comes first: with many streams open none of it is in the cache.
  call: ActiveCall | null
  #state = CONNECTING
  readonly #host: ConnectionHost
  readonly #parser = new ResponseParser()
  /** Bytes came since the last check of the timer: spares a call to the clock for every read. */
  #hasReceived = false

  readonly pool: OriginPool<Connection>
  /** Places in the pool's list of unused connections and in the client's table. */
  older: Connection | null = null
  newer: Connection | null = null
  slot = ABSENT
  inBurst = false
  /** EMFILE: no file descriptor was left for it. */
  isOutOfDescriptors = false

  readonly #socket: Socket
  readonly #writer: RequestWriter
  #tcpEstablished = false
  /** When connecting, or being unused, ends. */
  #expiresAt: number
  /** Last time the call made progress: request taken, head or data received. */
  #progressAt = 0
  #readingPaused = false
  /** The turn of the event loop in which the last response over TLS ended. */
  #endedInTurn = ABSENT

  constructor(host: ConnectionHost, pool: OriginPool<Connection>, call: ActiveCall) {
    this.#host = host
    this.pool = pool
    this.call = call
    call.connection = this
    this.#expiresAt = host.now + host.connectTimeoutMs
    this.#socket = openSocket(pool.origin, {
      address: call.connectRetries > 0 ? pool.address : undefined,
      buffer: host.readBuffer,
      secureContext: host.secureContext,
      session: pool.session,
      onRead: pool.origin.tls ? (bytes) => this.#record(bytes) : (bytes) => this.#read(bytes),
    })
    this.#writer = new RequestWriter(this.#socket, host.writeBuffer, () => {
      this.#progressAt = host.now
    })
    this.#listen()
  }

  /** Puts a call on an unused connection. @returns false when it proved dead before a byte was sent */
  reuse(call: ActiveCall): boolean {
    if (this.#socket.destroyed || this.#socket.errored !== null) {
      this.close()
      return false
    }
    this.call = call
    call.connection = this
    call.reused = true
    if (this.pool.origin.tls) {
      this.#reuseTls(call)
      return true
    }
    this.#begin(call)
    if (this.#socket.errored === null) return true
    // The very first write was refused by the kernel: not a byte went out, another connection may take the call.
    this.#detach(call)
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
    this.#progressAt = this.#host.now
    this.#socket.resume()
  }

  /** Closes the socket at once, and reports to the host only. */
  close(): void {
    if (this.#state === CLOSED) return
    if (this.#state === IDLE) this.pool.remove(this)
    this.#state = CLOSED
    this.#host.joiner.drop(this)
    this.#socket.destroy()
    this.#host.remove(this)
  }

  /** Closes, and reports to the call if there is one. */
  fail(kind: UpstreamFailureKind, detail: string, cause?: unknown): void {
    const { call } = this
    this.close()
    call?.fail(kind, detail, cause)
  }

  /** Called by the client's timer. */
  check(now: number): void {
    if (this.#state === IDLE) {
      if (now >= this.#expiresAt) this.close()
      return
    }
    const call = this.call!
    if (now >= call.deadlineAt) this.fail('deadline', 'the call took too long')
    else if (this.#state === CONNECTING) {
      if (now >= this.#expiresAt) this.fail('connect_timeout', 'connecting took too long')
    } else if (this.#hasReceived || this.#state === ASSIGNED || (call.headReceived && this.#readingPaused)) {
      this.#hasReceived = false
      this.#progressAt = now
    } else if (call.headReceived) {
      if (now - this.#progressAt >= call.idleTimeoutMs) this.fail('idle_timeout', 'the body stopped coming')
    } else if (now - this.#progressAt >= call.headTimeoutMs) {
      this.fail('head_timeout', 'no response head came')
    }
  }

  #read(bytes: number): true {
    const { readBuffer } = this.#host
    this.receive(readBuffer, bytes, bytes === readBuffer.length)
    return true
  }

  /** Takes one record of a TLS connection. */
  #record(bytes: number): true {
    this.#host.joiner.add(this, this.#host.readBuffer, bytes)
    return true
  }

  /**
   * Takes the bytes of one read.
   *
   * @param more further bytes may lie ready: were the response to end here, the next call could not be distinguished
   */
  receive(buffer: Buffer, bytes: number, more: boolean): void {
    const { call } = this
    if (call === null || this.#state !== BUSY) {
      // Bytes without a request: were the connection kept, the next call would take them for its answer.
      this.#onLost()
      return
    }
    const parser = this.#parser
    parser.read(buffer, 0, bytes)
    try {
      if (parser.headReady) {
        call.headReceived = true
        this.#hasReceived = true
        if (this.#writer.done) call.request = null
        const headers = parser.headers!
        parser.headers = null
        call.handler.onHead(parser.status, headers)
        if (this.call !== call) return
      }
      if (parser.dataTo > parser.dataFrom) {
        this.#hasReceived = true
        call.handler.onData(buffer.subarray(parser.dataFrom, parser.dataTo))
        if (this.call !== call) return
      }
    } catch (error) {
      call.failThrown(error)
      return
    }
    if (parser.fault !== null) this.fail(parser.fault.kind, parser.fault.detail)
    else if (parser.done) this.#finish(call, parser.rest === bytes && !more)
  }

  #listen(): void {
    const socket = this.#socket
    const { tls } = this.pool.origin
    socket.on('connect', () => {
      this.#tcpEstablished = true
      this.pool.address = socket.remoteAddress
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
    socket.on('close', () => this.#onLost())
  }

  #onUsable(): void {
    if (this.#state === CONNECTING && this.call !== null) this.#begin(this.call)
  }

  /**
   * Records of one read are reported one by one. What comes in a record after the end of a response must find the
   * connection without a request: within the turn in which a response ended, the next request is not written yet.
   */
  #reuseTls(call: ActiveCall): void {
    if (this.#endedInTurn !== this.#host.turn.number) {
      this.#begin(call)
      return
    }
    this.#state = ASSIGNED
    this.#host.turn.runAtEnd(() => {
      this.#host.joiner.flush()
      if (this.#state === ASSIGNED && this.call === call) this.#begin(call)
    })
  }

  #begin(call: ActiveCall): void {
    const { head, body, maxBodyBytes } = call.request!
    this.#state = BUSY
    this.#progressAt = this.#host.now
    this.#hasReceived = false
    this.#parser.start(head.prefix.isHead, maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES)
    call.sent = true
    this.#writer.write(head, body)
    if (call.paused) this.pauseReading()
  }

  /** Closes the connection and detaches a call of which nothing was sent. */
  #detach(call: ActiveCall): void {
    this.call = null
    call.connection = null
    call.sent = false
    call.reused = false
    this.close()
  }

  /** Moves a call of which nothing was sent to another connection, and fails any other. */
  #onLost(): void {
    const { call } = this
    if (this.#state === ASSIGNED && call !== null) {
      this.#detach(call)
      this.#host.place(call)
    } else this.fail('reset', 'the connection broke')
  }

  #finish(call: ActiveCall, clean: boolean): void {
    call.leave()
    if (clean && this.#writer.done && this.#parser.reusable && this.#becomeIdle()) this.#host.release(this)
    else this.close()
    call.end()
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
    if (this.pool.origin.tls) this.#endedInTurn = this.#host.turn.mark()
    if (this.#readingPaused) {
      this.#readingPaused = false
      this.#socket.resume()
    }
    return true
  }

  #onEnd(): void {
    this.#host.joiner.flush()
    const { call } = this
    if (this.#state === CONNECTING) {
      this.fail(this.#tcpEstablished ? 'tls' : 'connect', 'connection closed while connecting')
    } else if (call === null || this.#state !== BUSY || this.#isReset()) this.#onLost()
    else {
      const parser = this.#parser
      parser.end()
      if (parser.fault !== null) this.fail(parser.fault.kind, parser.fault.detail)
      else this.#finish(call, false)
    }
  }

  /**
   * A reset that arrives together with data is reported as an orderly end: the event loop library reads no further
   * than the hang-up. A body that ends by close would pass for whole. Writing nothing asks the kernel; it answers at
   * once when the connection is broken.
   */
  #isReset(): boolean {
    if (this.#socket.errored === null && this.#socket.writable) this.#socket.write('')
    return this.#socket.errored !== null
  }

  #onError(error: Error): void {
    this.#host.joiner.flush()
    if (this.#state === CONNECTING) this.#failConnecting(error)
    else if (this.#state === BUSY) this.fail('reset', error.message, error)
    else this.#onLost()
  }

  /**
   * Tries again where that may help: with a file held back for this, and, as looking up a name takes files too, and
   * turns in which a listener takes what was freed, at the address known.
   */
  #failConnecting(error: Error): void {
    const kind = classifyConnectError(error, this.#tcpEstablished)
    const { call, pool } = this
    this.isOutOfDescriptors = isDescriptorLimit(error)
    const mayTryAgain = this.isOutOfDescriptors || (kind === 'dns' && pool.address !== undefined)
    if (call === null || call.connectRetries === MAX_CONNECT_RETRIES || !mayTryAgain)
      return this.fail(kind, describeConnectError(error), error)
    call.connectRetries++
    this.#detach(call)
    if (this.isOutOfDescriptors) this.#host.reservedDescriptors.releaseOne()
    this.#host.place(call)
  }
}
