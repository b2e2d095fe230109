/** Limits requests before they are admitted: the bytes of all bodies, and the requests of one client address. */
import { Failure } from '../../schemas/failure.ts'
import { clientNetwork } from '../core/keys/address-prefix.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

const BYTES_PER_MIB = 1024 * 1024
/** Time after which an idle connection, and one with an unfinished request head, are closed, approximately. */
const CONNECTION_WINDOW_MS = 10_000
const MINUTE_MS = 60_000
/** Clients that are counted in one window; those beyond share a count. */
const MAX_COUNTED = 100_000

/** Null is no limit. */
export interface AddressLimits {
  /** Opened within ten seconds. */
  readonly connections: number | null
  readonly unauthenticatedPerMinute: number | null
  readonly bufferedBytes: number | null
}

export type ClientRefusal = 'buffer_full' | 'address_buffer' | 'address_connections' | 'address_requests'

interface ClientLimitsOptions {
  /** Returns the limit of body bytes for this process. */
  readonly maxBufferedBytes: () => number
  readonly perAddress: () => AddressLimits
  readonly proxies: () => TrustedProxies
  /** Called for each request or connection that is refused here. Must not throw. */
  readonly onRefused?: (reason: ClientRefusal, address: string) => void
  readonly now?: () => number
}

/** Events by client, in windows of time. */
class WindowCounts {
  readonly #windowMs: number
  readonly #counts = new Map<string, number>()
  /** Clients that have reached the limit. */
  readonly #blocked = new Set<string>()
  #beganAt = Number.NEGATIVE_INFINITY

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Counts one event; false: it is one more than `most` in this window. */
  add(client: string, most: number, now: number): boolean {
    this.#turn(now)
    const name = this.#groupClient(client)
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    if (count >= most) this.#blocked.add(name)
    return count <= most
  }

  hasBlocked(now: number): boolean {
    this.#turn(now)
    return this.#blocked.size > 0
  }

  isBlocked(client: string): boolean {
    return this.#blocked.has(this.#groupClient(client))
  }

  #groupClient(client: string): string {
    return this.#counts.size < MAX_COUNTED || this.#counts.has(client) ? client : ''
  }

  #turn(now: number): void {
    // A clock that was set back is outside the window too: else clients would stay blocked until it is there again.
    if (now >= this.#beganAt && now < this.#beganAt + this.#windowMs) return
    this.#beganAt = now
    this.#counts.clear()
    this.#blocked.clear()
  }
}

/** Source of a request's client address: read only where a limit is set. */
export interface ClientSource {
  readonly peer: () => string
  readonly forwardedFor: string
}

export class ClientLimits {
  readonly #options: ClientLimitsOptions
  readonly #now: () => number
  readonly #connections = new WindowCounts(CONNECTION_WINDOW_MS)
  readonly #unauthenticated = new WindowCounts(MINUTE_MS)
  readonly #bufferedBy = new Map<string, number>()
  #bufferedBytes = 0

  constructor(options: ClientLimitsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Bytes of bodies that are held. */
  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  /** Counts a new connection; false: it is to be closed. Those of trusted proxies are not counted. */
  mayConnect(peer: () => string): boolean {
    const { connections } = this.#options.perAddress()
    if (connections === null) return true
    const address = peer()
    if (this.#options.proxies().has(address)) return true
    if (this.#connections.add(clientNetwork(address), connections, this.#now())) return true
    this.#options.onRefused?.('address_connections', address)
    return false
  }

  /** Counts a request without a good key. */
  noteUnauthenticated(source: ClientSource): void {
    const most = this.#options.perAddress().unauthenticatedPerMinute
    if (most !== null) this.#unauthenticated.add(this.#findClient(source), most, this.#now())
  }

  /** Returns whether the client of a request has made too many without a valid key. */
  isBlocked(source: ClientSource): boolean {
    return (
      this.#unauthenticated.hasBlocked(this.#now()) &&
      this.#unauthenticated.isBlocked(this.#findClient(source))
    )
  }

  /** Returns the refusal of a request whose client is blocked. */
  refuseBlocked(source: ClientSource): Failure {
    this.#options.onRefused?.('address_requests', this.findAddress(source))
    return new Failure(
      'rate_limit_exceeded',
      'Too many requests without a valid API key came from this address. Try again in a minute.',
      {
        headers: [
          ['retry-after', '60'],
          ['connection', 'close'],
        ],
      },
    )
  }

  findAddress({ peer, forwardedFor }: ClientSource): string {
    return this.#options.proxies().findClient(peer(), forwardedFor)
  }

  /** Returns the name under which the bytes of a request's body count; null: its client has no limit. */
  findBufferClient(source: ClientSource): string | null {
    return this.#options.perAddress().bufferedBytes === null ? null : this.#findClient(source)
  }

  /** Returns null when the bytes are taken; else why they are not. */
  take(bytes: number, client: string | null): Failure | null {
    if (this.#bufferedBytes + bytes > this.#options.maxBufferedBytes()) {
      this.#options.onRefused?.('buffer_full', client ?? '')
      return bufferFull()
    }
    if (client !== null) {
      const held = (this.#bufferedBy.get(client) ?? 0) + bytes
      const most = this.#options.perAddress().bufferedBytes ?? Number.POSITIVE_INFINITY
      if (held > most) {
        this.#options.onRefused?.('address_buffer', client)
        return addressBufferFull(most)
      }
      this.#bufferedBy.set(client, held)
    }
    this.#bufferedBytes += bytes
    return null
  }

  /** Gives back what `take` took. */
  release(bytes: number, client: string | null): void {
    this.#bufferedBytes -= bytes
    if (client === null) return
    const held = (this.#bufferedBy.get(client) ?? 0) - bytes
    if (held > 0) this.#bufferedBy.set(client, held)
    else this.#bufferedBy.delete(client)
  }

  #findClient(source: ClientSource): string {
    return clientNetwork(this.findAddress(source))
  }
}

/** Bytes that the body of one request takes up. */
export class HeldBytes {
  readonly #limits: ClientLimits
  readonly #source: ClientSource
  #client: string | null = null
  #bytes = 0
  #isClosed = false

  constructor(limits: ClientLimits, source: ClientSource) {
    this.#limits = limits
    this.#source = source
  }

  /** Returns null if there is room for the bytes, otherwise the refusal of the request. */
  take(bytes: number): Failure | null {
    // A body may still be decoded when its request has ended: nothing would give these bytes back.
    if (this.#isClosed) return requestEnded()
    // Read during the request: the server knows no address of a closed one.
    if (this.#bytes === 0) this.#client = this.#limits.findBufferClient(this.#source)
    const refusal = this.#limits.take(bytes, this.#client)
    if (refusal === null) this.#bytes += bytes
    return refusal
  }

  /** Releases the bytes. A second call does nothing. */
  release(): void {
    if (this.#bytes > 0) this.#limits.release(this.#bytes, this.#client)
    this.#bytes = 0
  }

  /** Releases the bytes and takes no others: the request has ended. */
  close(): void {
    this.#isClosed = true
    this.release()
  }
}

/** Stops the decoding. The client never sees it. */
const requestEnded = (): Failure => new Failure('service_unavailable', 'The request has ended.')

const bufferFull = (): Failure =>
  new Failure(
    'service_unavailable',
    'The service holds as many request bodies as its memory allows. Try again in a moment.',
    { headers: [['retry-after', '1']] },
  )

const addressBufferFull = (most: number): Failure =>
  new Failure(
    'rate_limit_exceeded',
    `The request bodies on their way from this address exceed ${most / BYTES_PER_MIB} MiB together. Wait until some of these requests are answered.`,
    { headers: [['retry-after', '1']] },
  )
