/** The WebSockets of one server: upgrades of requests, and the connections that are open. */
import type { Observer } from 'rxjs'
import type { Arrival } from './arrival.ts'
import type { Reply } from './handler.ts'
import type { RenderError } from './reply-form.ts'
import { MAX_BODY_BYTES } from './request-reader.ts'
import { SocketConnection, type SocketData, type SocketOptions } from './socket-connection.ts'
import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocketBehavior } from './uws.ts'

/** A client that takes nothing for about this long, or does not answer a ping, counts as disconnected. */
const IDLE_SECONDS = 60

/** What the server needs of an upgrade to accept it. */
export interface Handshake {
  readonly key: string
  /** The first that the client offers; empty without any. */
  readonly protocol: string
  readonly context: us_socket_context_t
}

export type OnUpgrade = (response: HttpResponse, request: HttpRequest, handshake: Handshake) => void

interface Shared extends Pick<SocketOptions, 'clients' | 'maxTextBytes' | 'onInFlight'> {
  readonly renderError: (path: string, requestId: string, address: string) => RenderError
}

export class Sockets {
  readonly #shared: Shared
  readonly #open = new Set<SocketConnection>()
  #isDraining = false

  constructor(shared: Shared) {
    this.#shared = shared
  }

  /** Number of open connections. */
  get count(): number {
    return this.#open.size
  }

  makeBehavior(onUpgrade: OnUpgrade): WebSocketBehavior<SocketData> {
    return {
      // Without a compression here the server accepts none.
      maxPayloadLength: MAX_BODY_BYTES,
      // No message is dropped: a connection that is behind pauses its upstream.
      maxBackpressure: 0,
      idleTimeout: IDLE_SECONDS,
      sendPingsAutomatically: true,
      upgrade: (response, request, context) =>
        onUpgrade(response, request, {
          key: request.getHeader('sec-websocket-key'),
          protocol: request.getHeader('sec-websocket-protocol').split(',')[0]!.trim(),
          context,
        }),
      open: (socket) => socket.getUserData().connection.open(socket),
      message: (socket, message) => socket.getUserData().connection.take(message),
      drain: (socket) => socket.getUserData().connection.resume(),
      close: (socket) => socket.getUserData().connection.closed(),
    }
  }

  /**
   * Returns the observer of the reply to an upgrade: a session turns the connection into a WebSocket. Do not cork that by its
   * own response: after a late upgrade the server reads fields that are gone, and closes some connections. Corking another
   * connection instead also avoids the server's warning.
   */
  answer(arrival: Arrival, handshake: Handshake, maxMs: number): Observer<Reply> {
    const { writer } = arrival
    return {
      next: (reply) => {
        if (reply.type !== 'full' || reply.session === undefined) return writer.next(reply)
        const { session, headers } = reply
        const [other] = this.#open
        const connection = this.#connect({ session, maxMs, head: arrival.head, address: arrival.address() })
        const { response, requestId } = arrival
        // The response is gone with the upgrade.
        writer.abort()
        const upgrade = () => {
          response.writeStatus('101 Switching Protocols').writeHeader('x-gateway-trace', requestId)
          for (const [name, value] of headers) response.writeHeader(name, value)
          response.upgrade({ connection }, handshake.key, handshake.protocol, '', handshake.context)
        }
        if (other === undefined) upgrade()
        else other.cork(() => response.cork(upgrade))
        if (this.#isDraining) connection.drain()
      },
      error: (error) => writer.error(error),
      complete: () => writer.complete(),
    }
  }

  #connect(own: Pick<SocketOptions, 'head' | 'address' | 'session' | 'maxMs'>): SocketConnection {
    const { renderError, ...shared } = this.#shared
    const connection = new SocketConnection({
      ...shared,
      ...own,
      renderError: (requestId, address) => renderError(own.head.path, requestId, address),
      onClosed: () => this.#open.delete(connection),
    })
    this.#open.add(connection)
    return connection
  }

  drain(): void {
    this.#isDraining = true
    for (const connection of [...this.#open]) connection.drain()
  }
}
