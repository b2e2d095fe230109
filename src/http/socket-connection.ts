/**
 * One WebSocket: each message of the client is a call, one after the other; the events of a reply are messages. A client
 * that reads slowly pauses the upstream, and one that leaves ends its call, as over HTTP.
 */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { Failure } from '../../schemas/failure.ts'
import { newId } from '../core/keys/ids.ts'
import { TextLimit } from './body/text-limit.ts'
import { type ClientLimits, HeldBytes } from './client-limits.ts'
import type { GatewayRequest, SocketRequest, SocketSession } from './handler.ts'
import { shuttingDown } from './refusals.ts'
import type { RenderError } from './reply-form.ts'
import { run } from './request-checks.ts'
import { type CopiedHead, copyPiece } from './request-reader.ts'
import { NO_PARAMS } from './router.ts'
import { SocketCall } from './socket-call.ts'
import type { WebSocket } from './uws.ts'

/** Messages that wait for the call before them. */
const MAX_WAITING = 16
/** Codes of RFC 6455, with which the server closes a connection. */
const DONE = 1000
const GOING_AWAY = 1001

export interface SocketOptions {
  /** Of the upgrade. */
  readonly head: CopiedHead
  readonly address: string
  readonly session: SocketSession
  readonly maxMs: number
  readonly maxTextBytes: () => number
  readonly clients: ClientLimits
  readonly renderError: (requestId: string, address: string) => RenderError
  /** Called when a call begins and when it is over. */
  readonly onInFlight: (change: 1 | -1) => void
  /** Called once, when the connection is over. */
  readonly onClosed: () => void
}

/** What the server keeps with a connection: it copies the fields of an object, and no class. */
export interface SocketData {
  readonly connection: SocketConnection
}

interface Message {
  readonly bytes: Buffer
  readonly held: HeldBytes
}

export class SocketConnection {
  readonly #options: SocketOptions
  readonly #kept: HeldBytes
  readonly #waiting: Message[] = []
  #socket: WebSocket<SocketData> | null = null
  #expiry: NodeJS.Timeout | null = null
  #call: SocketCall | null = null
  /** A message is on its way to its call. */
  #isBusy = false
  #isBehind = false
  #isExpired = false
  #isDraining = false

  constructor(options: SocketOptions) {
    this.#options = options
    this.#kept = this.#holdBytes()
  }

  open(socket: WebSocket<SocketData>): void {
    this.#socket = socket
    this.#expiry = setTimeout(() => this.#expire(), this.#options.maxMs).unref()
  }

  take(message: ArrayBuffer): void {
    const held = this.#holdBytes()
    const refusal = this.#waiting.length < MAX_WAITING ? held.take(message.byteLength) : tooManyMessages()
    if (refusal !== null) return this.#refuse(refusal)
    this.#waiting.push({ bytes: copyPiece(message), held })
    this.#goOn()
  }

  /** Called when the client has taken bytes. */
  resume(): void {
    if (!this.#isBehind || this.#socket!.getBufferedAmount() > 0) return
    this.#isBehind = false
    this.#call?.resume()
  }

  /** Ends the connection once its call is over. */
  drain(): void {
    this.#isDraining = true
    this.#goOn()
  }

  /** Called when the client has left, or the server has closed the connection. */
  closed(): void {
    this.#socket = null
    if (this.#expiry !== null) clearTimeout(this.#expiry)
    this.#forgetWaiting()
    this.#call?.abort()
    this.#options.session.close()
    this.#kept.close()
    this.#options.onClosed()
  }

  #holdBytes(): HeldBytes {
    const { clients, address } = this.#options
    return new HeldBytes(clients, { peer: () => address, forwardedFor: '' })
  }

  #forgetWaiting(): void {
    for (const { held } of this.#waiting.splice(0)) held.close()
  }

  #expire(): void {
    this.#isExpired = true
    this.#goOn()
  }

  cork(write: () => void): void {
    if (this.#socket === null) write()
    else this.#socket.cork(write)
  }

  readonly #send = (message: string): void => {
    this.#socket?.send(message)
  }

  #refuse(error: Failure): void {
    const { session, renderError, address } = this.#options
    const requestId = newId('req')
    this.#send(session.printRefusal(renderError(requestId, address)(error), requestId))
  }

  /** Begins the next call, or ends the connection where none may begin. */
  #goOn(): void {
    while (!this.#isBusy && this.#socket !== null) {
      if (this.#isDraining || this.#isExpired) return this.#end(this.#socket)
      const message = this.#waiting.shift()
      if (message === undefined) return
      this.#begin(message)
    }
  }

  #end(socket: WebSocket<SocketData>): void {
    if (this.#isExpired) this.#send(this.#options.session.expired)
    else if (this.#waiting.length > 0) this.#refuse(shuttingDown())
    this.#forgetWaiting()
    if (this.#isExpired) socket.end(DONE, 'The connection has been open for its whole time.')
    else socket.end(GOING_AWAY, 'The service is shutting down.')
  }

  #begin({ bytes, held }: Message): void {
    const { session, maxTextBytes } = this.#options
    const refuse = (error: unknown) => {
      held.close()
      this.#refuse(error as Failure)
    }
    let asked: SocketRequest | null
    try {
      asked = session.read(bytes)
    } catch (error) {
      return refuse(error)
    }
    if (asked === null) return held.close()
    this.#isBusy = true
    const { body } = asked
    const maxText = maxTextBytes()
    if (body.length <= maxText) return this.#run(asked, held)
    const isWanted = () => this.#socket !== null
    new TextLimit(maxText).checkWhole(body, isWanted, (refusal) => {
      if (refusal === null) return this.#run(asked, held)
      this.#isBusy = false
      refuse(refusal)
      this.#goOn()
    })
  }

  #run({ handler, method, body, openReply }: SocketRequest, held: HeldBytes): void {
    const { head, address, renderError, onInFlight } = this.#options
    const submittedAt = Date.now()
    const requestId = newId('req', submittedAt)
    const request: GatewayRequest = {
      requestId,
      method,
      path: head.path,
      params: NO_PARAMS,
      query: head.query,
      // A key of the upgrade would make all calls one.
      header: (name) => (name === 'idempotency-key' ? '' : head.header(name)),
      hasHeader: () => false,
      body,
      address: () => address,
      submittedAt,
      startedAt: performance.now(),
    }
    onInFlight(1)
    const call = new SocketCall({
      requestId,
      reply: openReply(this.#send),
      renderError: renderError(requestId, address),
      held,
      cork: (write) => this.#write(write),
      onOver: () => {
        onInFlight(-1)
        this.#call = null
        this.#isBusy = false
        this.#keepWithinMemory()
        this.#goOn()
      },
    })
    this.#call = call
    if (this.#isBehind) call.pause()
    call.run(run(handler, request))
  }

  /** Pauses the call if the client has not taken all that `write` sends. */
  #write(write: () => void): void {
    this.cork(write)
    if (this.#isBehind || (this.#socket?.getBufferedAmount() ?? 0) === 0) return
    this.#isBehind = true
    this.#call?.pause()
  }

  /** What is kept for the next call counts as a body does; without room for it the next call finds nothing. */
  #keepWithinMemory(): void {
    const { session } = this.#options
    this.#kept.release()
    const { keptBytes } = session
    if (keptBytes > 0 && this.#kept.take(keptBytes) !== null) session.forget()
  }
}

const tooManyMessages = (): Failure =>
  new Failure(
    'rate_limit_exceeded',
    `More than ${MAX_WAITING} messages wait on this connection. Open another one for calls at the same time.`,
    { headers: [['retry-after', '1']] },
  )
