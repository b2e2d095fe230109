/**
 * Writes one reply. Every write is corked; the head waits for the first data, so that both leave in one piece; a
 * client that reads slowly pauses the upstream. After an abort or the end the response is never touched again.
 */

import type { HttpResponse } from 'uWebSockets.js'
import type { Observer } from 'rxjs'
import type { Flow, HeaderList, Reply } from './exchange.ts'

/** Status lines by number; the server wants the reason with it. */
const REASONS: Readonly<Record<number, string>> = {
  200: '200 OK',
  202: '202 Accepted',
  204: '204 No Content',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  402: '402 Payment Required',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  408: '408 Request Timeout',
  409: '409 Conflict',
  413: '413 Content Too Large',
  422: '422 Unprocessable Content',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  502: '502 Bad Gateway',
  503: '503 Service Unavailable',
  504: '504 Gateway Timeout',
}
const statusLine = (status: number): string => REASONS[status] ?? `${status} Status`

/** Turns an error into the reply that a client of this path expects. */
export type RenderError = (error: unknown) => Extract<Reply, { type: 'full' }>

export interface ReplyWriterOptions {
  readonly response: HttpResponse
  /** Raw header lines for every reply, without the last CRLF: one call into the server instead of one a header. */
  readonly commonHeaders: readonly [string, string]
  readonly requestId: string
  readonly renderError: RenderError
  /** Called once, when the reply is over or the client is gone. */
  readonly onClosed: () => void
  /** Called when the first byte is written. */
  readonly onFirstByte?: () => void
}

export class ReplyWriter implements Observer<Reply> {
  readonly #options: ReplyWriterOptions
  readonly #response: HttpResponse
  #head: { status: number; headers: HeaderList } | null = null
  #flow: Flow | null = null
  #isPaused = false
  #hasWritten = false
  #isClosed = false

  constructor(options: ReplyWriterOptions) {
    this.#options = options
    this.#response = options.response
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The client is gone: nothing is written any more. */
  aborted(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#options.onClosed()
  }

  next(reply: Reply): void {
    if (this.#isClosed) return
    switch (reply.type) {
      case 'full':
        this.#full(reply)
        break
      case 'head':
        this.#head = reply
        this.#flow = reply.flow
        break
      case 'data':
        this.#data(reply.bytes)
        break
    }
  }

  error(error: unknown): void {
    if (this.#isClosed) return
    if (this.#hasWritten) this.complete()
    else this.#full(this.#options.renderError(error))
  }

  complete(): void {
    if (this.#isClosed) return
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.end()
    })
    this.#close()
  }

  #full(reply: Extract<Reply, { type: 'full' }>): void {
    this.#head = reply
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.end(reply.body)
    })
    this.#close()
  }

  #data(bytes: Uint8Array | string): void {
    let isDrained = true
    this.#response.cork(() => {
      this.#writeHead()
      isDrained = this.#response.write(bytes)
    })
    if (!isDrained) this.#pause()
  }

  #writeHead(): void {
    const head = this.#head
    if (head === null) return
    this.#head = null
    this.#hasWritten = true
    const response = this.#response
    response.writeStatus(statusLine(head.status))
    response.writeHeader(this.#options.commonHeaders[0], this.#options.commonHeaders[1])
    response.writeHeader('x-gateway-trace', this.#options.requestId)
    for (const [name, value] of head.headers) response.writeHeader(name, value)
    this.#options.onFirstByte?.()
  }

  #pause(): void {
    if (this.#isPaused || this.#flow === null) return
    this.#isPaused = true
    this.#flow.pause()
    this.#response.onWritable(() => {
      if (this.#isClosed || !this.#isPaused) return true
      this.#isPaused = false
      this.#flow?.resume()
      return true
    })
  }

  #close(): void {
    this.#isClosed = true
    this.#options.onClosed()
  }
}
