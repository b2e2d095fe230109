/** The sockets of a pool: each leads to the server that is right at the moment, and all can be ended at once. */
import { Socket } from 'node:net'
import type { Address } from './address.ts'

/** A server, or a proxy before it, has closed a connection without an answer. */
class ClosedInSilence extends Error {
  readonly code = 'ECONNRESET'

  constructor({ host, port }: Address) {
    super(`${host}:${port} closed the connection without an answer`)
  }
}

/**
 * Runs `close` when the client (3.4.9) listens to its socket, and has written what it was about to: it never sends again
 * what it could not, and over TLS its write to a socket that is gone is an uncaught exception.
 */
const closeAfterWrites = (close: () => void) => setImmediate(() => setImmediate(close))

export class Sockets {
  readonly #choose: () => Promise<Address>
  readonly #onFailed: (address: Address) => void
  readonly #open = new Map<Socket, Address>()
  #isEnded = false
  /** Called before connections are dropped. */
  onDrop: () => void = () => {}

  /** @param onFailed called with the server of a socket that failed or that the server has closed */
  constructor(choose: () => Promise<Address>, onFailed: (address: Address) => void = () => undefined) {
    this.#choose = choose
    this.#onFailed = onFailed
  }

  /** Returns a socket that connects. Never rejects: the client (3.4.9) loses a connection forever without a socket. */
  async open(): Promise<Socket> {
    const socket = new Socket()
    try {
      const address = await this.#choose()
      if (this.#isEnded) throw new Error('The pool has ended')
      this.#connect(socket, address)
    } catch (error) {
      socket.cork()
      closeAfterWrites(() => socket.destroy(error as Error))
    }
    return socket
  }

  /** Ends the connections to all servers but those; their statements fail as closed. */
  drop(isKept: (address: Address) => boolean = () => false): void {
    const dropped = [...this.#open].filter(([socket, address]) => !socket.destroyed && !isKept(address))
    if (dropped.length > 0) this.onDrop()
    closeAfterWrites(() => {
      for (const [socket] of dropped) socket.destroy()
    })
  }

  /** No socket is opened from now on. */
  end(): void {
    this.#isEnded = true
  }

  #connect(socket: Socket, address: Address): void {
    const { host, port } = address
    if (host.startsWith('/')) socket.connect(`${host}/.s.PGSQL.${port}`)
    else socket.connect(port, host)
    // The client names them in errors. By `_host` TLS checks the name of a server that is named by an address: without
    // it any certificate for "localhost" would do.
    Object.assign(socket, { host, port, _host: host })
    // TLS takes the listeners of a socket away, so that closed ones are removed here.
    for (const old of this.#open.keys()) if (old.destroyed) this.#open.delete(old)
    this.#open.set(socket, address)
    socket.on('error', () => this.#onFailed(address))
    socket.on('end', () => {
      this.#onFailed(address)
      // The client (3.4.9) reconnects without a pause, forever, where a server closes a connection in silence.
      if (socket.bytesRead === 0) socket.destroy(new ClosedInSilence(address))
    })
  }
}
