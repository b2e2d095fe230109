/**
 * Writes a response body on the bare socket, one system call for each write, and stops it at a byte when a fault
 * wants that. `ServerResponse.write` would join the writes of one turn and could not leave a chunk unfinished.
 */

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type BodyWriterOptions = {
  /** The head has been sent, and the response has its socket. */
  readonly response: ServerResponse
  /** The most bytes of one write. Each write is a turn of the event loop. */
  readonly pieceBytes: number | null
  /** The body stops there. */
  readonly stopAfterBytes: number | null
  /** True if the stop leaves an HTTP chunk unfinished. */
  readonly tearsChunk: boolean
  /** Called when more may be written, after `write` returned false. */
  readonly onReady: () => void
  /** Called when the stop is reached and the system has taken every byte before it. */
  readonly onStop: () => void
}

export class BodyWriter {
  readonly #options: BodyWriterOptions
  readonly #socket: Socket
  readonly #chunked: boolean
  /** True without a stop and pieces: each write is one write of the socket. */
  readonly #plain: boolean
  #pending: Buffer | null = null
  #sentBytes = 0
  #stopped = false

  constructor(options: BodyWriterOptions) {
    this.#options = options
    this.#socket = options.response.socket as Socket
    this.#chunked = options.response.chunkedEncoding
    this.#plain = options.pieceBytes === null && options.stopAfterBytes === null
  }

  /** Returns whether more may be written at once; if not, calls `onReady` later, or `onStop` when it is over. */
  write(data: string | Buffer): boolean {
    if (this.#stopped || !this.#socket.writable) return false
    if (this.#plain) {
      if (this.#send(data)) return true
      this.#socket.once('drain', this.#options.onReady)
      return false
    }
    this.#pending = typeof data === 'string' ? Buffer.from(data) : data
    return this.#advance()
  }

  /** Ends the body properly, unless a stop came first. Returns whether it did. */
  end(): boolean {
    if (this.#stopped) return false
    const { stopAfterBytes, tearsChunk } = this.#options
    if (tearsChunk && stopAfterBytes === this.#sentBytes) {
      this.#stop()
      return false
    }
    this.#options.response.end()
    return true
  }

  #advance(): boolean {
    while (this.#pending !== null && this.#pending.length > 0) {
      const piece = this.#pending.subarray(0, this.#options.pieceBytes ?? this.#pending.length)
      if (this.#stopsWithin(piece)) return false
      this.#pending = this.#pending.subarray(piece.length)
      this.#sentBytes += piece.length
      const taken = this.#send(piece)
      if (!taken) this.#socket.once('drain', () => this.#resume())
      else if (this.#options.pieceBytes !== null) setImmediate(() => this.#resume())
      if (!taken || this.#options.pieceBytes !== null) return false
    }
    this.#pending = null
    return true
  }

  #resume(): void {
    if (!this.#stopped && this.#socket.writable && this.#advance()) this.#options.onReady()
  }

  #stopsWithin(piece: Buffer): boolean {
    const { stopAfterBytes, tearsChunk } = this.#options
    if (stopAfterBytes === null) return false
    const room = stopAfterBytes - this.#sentBytes
    if (piece.length < room || (tearsChunk && piece.length === room)) return false
    const kept = piece.subarray(0, room)
    this.#sentBytes += kept.length
    if (tearsChunk && this.#chunked) this.#socket.write(`${piece.length.toString(16)}\r\n`)
    if (tearsChunk && kept.length > 0) this.#socket.write(kept)
    if (!tearsChunk && kept.length > 0) this.#send(kept)
    this.#stop()
    return true
  }

  #stop(): void {
    this.#stopped = true
    this.#pending = null
    this.#socket.write('', () => this.#options.onStop())
  }

  #send(data: string | Buffer): boolean {
    if (!this.#chunked) return this.#socket.write(data)
    if (typeof data === 'string') {
      return this.#socket.write(`${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`)
    }
    return this.#socket.write(Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, CRLF]))
  }
}

const CRLF = Buffer.from('\r\n')
