/** Connections that are kept for the next call to the same origin. */
import type { Counters } from './active-call.ts'
import type { Origin } from './origin.ts'

/** A place in the list of unused connections. */
interface PoolEntry<Connection> {
  older: Connection | null
  newer: Connection | null
}

/** The unused connections of one origin, last used first, and its TLS session. Every operation is constant in time. */
export class OriginPool<Connection extends PoolEntry<Connection>> {
  readonly origin: Origin
  /** From the last full handshake or ticket; shortens the next one. */
  session: Buffer | undefined = undefined
  /** The address of the last connection. */
  address: string | undefined = undefined
  /** Connections to this origin, used or not. */
  open = 0
  idle = 0
  readonly #counters: Counters
  #newest: Connection | null = null
  #oldest: Connection | null = null

  constructor(origin: Origin, counters: Counters) {
    this.origin = origin
    this.#counters = counters
  }

  get oldest(): Connection | null {
    return this.#oldest
  }

  put(connection: Connection): void {
    connection.older = this.#newest
    connection.newer = null
    if (this.#newest === null) this.#oldest = connection
    else this.#newest.newer = connection
    this.#newest = connection
    this.idle++
    this.#counters.idle++
  }

  take(): Connection | null {
    const connection = this.#newest
    if (connection !== null) this.remove(connection)
    return connection
  }

  remove(connection: Connection): void {
    const { older, newer } = connection
    if (newer === null) this.#newest = older
    else newer.older = older
    if (older === null) this.#oldest = newer
    else older.newer = newer
    connection.older = null
    connection.newer = null
    this.idle--
    this.#counters.idle--
  }
}
