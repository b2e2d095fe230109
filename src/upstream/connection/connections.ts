import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import {
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_IDLE_CONNECTION_MS,
  DEFAULT_MAX_CONNECTIONS,
  DEFAULT_MAX_IDLE_PER_ORIGIN,
  JOINED_REQUEST_BYTES,
  MAX_REMEMBERED_ORIGINS,
  READ_BUFFER_BYTES,
  RESERVED_DESCRIPTORS,
  TICK_MS,
} from '../limits.ts'
import { RecordJoiner } from '../response/record-joiner.ts'
import {
  ActiveCall,
  type Counters,
  type UpstreamCall,
  type UpstreamHandler,
  type UpstreamRequest,
} from './active-call.ts'
import { Connection, type ConnectionHost } from './connection.ts'
import type { Origin } from './origin.ts'
import { OriginPool } from './origin-pool.ts'
import { ReservedDescriptors } from './reserved-descriptors.ts'
import { Turn } from './turn.ts'

export interface UpstreamClientOptions {
  /** PEM certificates trusted besides Node's own and those of NODE_EXTRA_CA_CERTS. */
  readonly ca?: readonly string[]
  readonly connectTimeoutMs?: number
  readonly idleConnectionMs?: number
  readonly maxConnections?: number
  readonly maxIdlePerOrigin?: number
  /** Called with every exception a handler threw. Must not throw. */
  readonly onHandlerError?: (error: unknown) => void
}

export interface UpstreamStats extends Counters {
  /** Origins remembered. */
  origins: number
}

/**
 * All connections of one client: one request at a time on each, a list of unused ones per origin, no queue. A call
 * without an unused connection opens one.
 */
export class Connections implements ConnectionHost {
  now = performance.now()
  readonly readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES)
  readonly writeBuffer = { buffer: Buffer.allocUnsafeSlow(JOINED_REQUEST_BYTES) }
  readonly turn = new Turn()
  readonly joiner = new RecordJoiner(this.turn)
  readonly connectTimeoutMs: number
  readonly idleConnectionMs: number
  readonly secureContext: SecureContext | undefined
  readonly reservedDescriptors = new ReservedDescriptors(RESERVED_DESCRIPTORS)

  readonly #maxConnections: number
  readonly #maxIdlePerOrigin: number
  readonly #onHandlerError: (error: unknown) => void
  readonly #pools = new Map<string, OriginPool<Connection>>()
  readonly #connections: Connection[] = []
  readonly #counters: Counters = { open: 0, idle: 0, inFlight: 0, opened: 0, reused: 0, handlerErrors: 0 }
  #timer: NodeJS.Timeout | null = null
  #closed = false

  constructor(options: UpstreamClientOptions = {}) {
    this.connectTimeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS
    this.idleConnectionMs = options.idleConnectionMs ?? DEFAULT_IDLE_CONNECTION_MS
    this.#maxConnections = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS
    this.#maxIdlePerOrigin = options.maxIdlePerOrigin ?? DEFAULT_MAX_IDLE_PER_ORIGIN
    this.#onHandlerError = options.onHandlerError ?? (() => {})
    this.secureContext =
      options.ca === undefined
        ? undefined
        : createSecureContext({ ca: [...getCACertificates('default'), ...options.ca] })
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    this.now = performance.now()
    const call = new ActiveCall(request, handler, this.now, this.#counters, this.#onHandlerError)
    if (this.#closed) process.nextTick(() => call.fail('closed', 'the client is closed'))
    else this.place(call)
    return call
  }

  readStats(): Readonly<UpstreamStats> {
    return { ...this.#counters, origins: this.#pools.size }
  }

  close(): void {
    this.#closed = true
    for (let i = this.#connections.length - 1; i >= 0; i--) {
      this.#connections[i]?.fail('closed', 'the client is closed')
    }
    this.reservedDescriptors.close()
  }

  release(connection: Connection): void {
    const { pool } = connection
    pool.put(connection)
    if (pool.idle > this.#maxIdlePerOrigin) pool.oldest?.close()
  }

  remove(connection: Connection): void {
    const last = this.#connections.pop()!
    if (last !== connection) {
      this.#connections[connection.slot] = last
      last.slot = connection.slot
    }
    connection.pool.open--
    this.#counters.open--
    if (!this.#closed && !connection.isOutOfDescriptors) this.reservedDescriptors.refill()
    if (this.#connections.length === 0) this.#stopTimer()
  }

  place(call: ActiveCall): void {
    const { origin, onFreshConnection } = call.request!
    const pool = this.#findPool(origin)
    if (onFreshConnection !== true && this.#placeOnIdle(call, pool)) return
    if (this.#counters.open >= this.#maxConnections && !this.#closeOneIdle()) {
      process.nextTick(() => call.fail('exhausted', 'too many open connections'))
      return
    }
    let connection: Connection
    try {
      connection = new Connection(this, pool, call)
    } catch (error) {
      call.connection = null
      process.nextTick(() => call.fail('connect', 'the socket could not be made', error))
      return
    }
    connection.slot = this.#connections.push(connection) - 1
    pool.open++
    this.#counters.open++
    this.#counters.opened++
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
  }

  #placeOnIdle(call: ActiveCall, pool: OriginPool<Connection>): boolean {
    for (let kept = pool.take(); kept !== null; kept = pool.take()) {
      if (!kept.reuse(call)) continue
      this.#counters.reused++
      return true
    }
    return false
  }

  #closeOneIdle(): boolean {
    if (this.#counters.idle === 0) return false
    for (const { oldest } of this.#pools.values()) {
      if (oldest !== null) {
        oldest.close()
        return true
      }
    }
    return false
  }

  #findPool(origin: Origin): OriginPool<Connection> {
    const known = this.#pools.get(origin.key)
    if (known !== undefined) return known
    if (this.#pools.size >= MAX_REMEMBERED_ORIGINS) this.#dropUnusedPools()
    const pool = new OriginPool<Connection>(origin, this.#counters)
    this.#pools.set(origin.key, pool)
    return pool
  }

  #dropUnusedPools(): void {
    for (const [key, pool] of this.#pools) if (pool.open === 0) this.#pools.delete(key)
  }

  /** Checks every connection. 9,000 take a quarter of a millisecond: less than a timer per call. */
  #tick(): void {
    this.now = performance.now()
    for (let i = this.#connections.length - 1; i >= 0; i--) this.#connections[i]?.check(this.now)
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}
