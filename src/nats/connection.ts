/** One connection to NATS that reconnects forever and notifies its listeners. */
import { readFileSync } from 'node:fs'
import {
  type Authenticator,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from '@nats-io/transport-node'

import { describeTlsFailure } from '../core/tls-failure.ts'

const RECONNECT_FIRST_MS = 50
const RECONNECT_MAX_MS = 1_000
const CONNECT_TIMEOUT_MS = 3_000
/** A vanished peer is noticed after twice this time. */
const PING_INTERVAL_MS = 5_000
const PINGS_UNANSWERED = 2
const CLOSE_BOUND_MS = 2_000

export interface NatsLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

export interface NatsHealth {
  readonly isConnected: boolean
  /** Number of lost connections since the process began. */
  readonly losses: number
  /** Reason why the last connection ended or failed. */
  readonly lastError: string | null
}

export interface ConnectionListener {
  /** Called with a new connection: subscriptions of the one before are lost. */
  onConnected(connection: NatsConnection): void
  onDisconnected(): void
}

export class Connection {
  readonly #servers: string[]
  /** The client reads only the host of a URL: without this it would accept a server without TLS. */
  readonly #tls: { tls?: object }
  readonly #login: { user?: string; pass?: string; token?: string }
  /** Path of a file with credentials; null: there is none. */
  readonly #credentials: string | null
  readonly #name: string
  readonly #log: NatsLog
  readonly #listeners: ConnectionListener[] = []
  #current: NatsConnection | null = null
  #losses = 0
  #lastError: string | null = null
  #isClosed = false
  #wake: () => void = () => undefined
  readonly #running: Promise<void>

  /**
   * @param url may name several servers with commas, and a user and password, or a file with `?credentials=`. Where one
   *   of them is `tls://`, all are reached by TLS.
   */
  constructor(url: string, name: string, log: NatsLog) {
    const urls = url.split(',').map((part) => new URL(part.includes('://') ? part : `nats://${part}`))
    this.#servers = urls.map(({ protocol, host }) => `${protocol}//${host}`)
    this.#tls = urls.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}
    this.#login = readLogin(urls[0])
    this.#credentials = urls.map((one) => one.searchParams.get('credentials')).find(Boolean) ?? null
    this.#name = name
    this.#log = log
    this.#running = this.#run()
  }

  get current(): NatsConnection | null {
    return this.#current
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Adds a listener, and calls it at once when there is a connection already. */
  use(listener: ConnectionListener): void {
    this.#listeners.push(listener)
    if (this.#current !== null) listener.onConnected(this.#current)
  }

  leave(listener: ConnectionListener): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  health(): NatsHealth {
    return { isConnected: this.#current !== null, losses: this.#losses, lastError: this.#lastError }
  }

  /** Sends waiting messages within a short bound, and closes permanently. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    const current = this.#current
    if (current !== null) {
      const bound = new Promise((resolve) => setTimeout(resolve, CLOSE_BOUND_MS).unref())
      await Promise.race([current.flush().catch(() => undefined), bound])
      await current.close()
    }
    await this.#running
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#isClosed; attempt++) {
      const connection = await this.#connect()
      if (connection === null) {
        await this.#pause(Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.min(attempt, 10)))
        continue
      }
      attempt = 0
      this.#current = connection
      for (const listener of [...this.#listeners]) listener.onConnected(connection)
      if (this.#isClosed) await connection.close()
      const reason = await connection.closed()
      this.#current = null
      for (const listener of [...this.#listeners]) listener.onDisconnected()
      if (this.#isClosed) return
      this.#losses += 1
      this.#lastError = reason?.message ?? 'the connection ended'
      this.#log.warn({ reason: this.#lastError }, 'Lost the connection to NATS; reconnecting')
    }
  }

  async #connect(): Promise<NatsConnection | null> {
    try {
      const connection = await connect({
        servers: this.#servers,
        ...this.#tls,
        ...this.#login,
        // Read for each connection: a file that was replaced is in force at the next one.
        ...(this.#credentials !== null && {
          authenticator: makeAuthenticator(readFileSync(this.#credentials)),
        }),
        name: this.#name,
        reconnect: false,
        timeout: CONNECT_TIMEOUT_MS,
        pingInterval: PING_INTERVAL_MS,
        maxPingOut: PINGS_UNANSWERED,
        noAsyncTraces: true,
        ignoreClusterUpdates: true,
      })
      // A healthy start logs nothing.
      if (this.#lastError !== null) this.#log.info({ server: connection.getServer() }, 'Connected to NATS')
      return connection
    } catch (error) {
      const message = (error as Error).message
      const remedy = describeTlsFailure('NATS', error)
      if (message !== this.#lastError)
        this.#log.warn({ reason: message, ...(remedy && { remedy }) }, 'NATS does not answer; retrying')
      this.#lastError = message
      return null
    }
  }

  #pause(delayMs: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delayMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Returns the proof of a `.creds` file, which has a JWT and a seed, or of a file with only the seed of an nkey. */
function makeAuthenticator(file: Buffer): Authenticator {
  if (file.includes('BEGIN NATS USER JWT')) return credsAuthenticator(file)
  return nkeyAuthenticator(Buffer.from(file.toString('utf8').trim()))
}

function readLogin(url: URL | undefined): { user?: string; pass?: string; token?: string } {
  if (url === undefined || url.username === '') return {}
  const user = decodeURIComponent(url.username)
  return url.password === '' ? { token: user } : { user, pass: decodeURIComponent(url.password) }
}
