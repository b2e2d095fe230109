import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { BODY_SLICE_BYTES, JOINED_REQUEST_BYTES } from '../limits.ts'
import { joinHead, type RequestHead } from './head.ts'

/** The buffer in which small requests are joined, shared by all connections of a client. */
export interface WriteBuffer {
  buffer: Buffer
}

/**
 * Writes requests to a socket: a small one as one copied piece, a large body slice by slice, the next when the kernel
 * has taken the last, so that neither the stream nor TLS ever holds more than a slice.
 */
export class RequestWriter {
  /** The socket has all of the last request. */
  done = true
  readonly #socket: Socket
  readonly #writeBuffer: WriteBuffer
  readonly #onTaken: () => void
  #body: Uint8Array | null = null
  #offset = 0

  /** @param onTaken called when the kernel has taken a slice of a large body */
  constructor(socket: Socket, writeBuffer: WriteBuffer, onTaken: () => void) {
    this.#socket = socket
    this.#writeBuffer = writeBuffer
    this.#onTaken = onTaken
  }

  write(head: RequestHead, body: Uint8Array | null): void {
    this.done = true
    const bodyBytes = body?.length ?? 0
    if (head.prefix.bytes.length + head.rest.length + bodyBytes <= JOINED_REQUEST_BYTES)
      this.#writeJoined(head, body)
    else if (body === null || bodyBytes === 0) this.#socket.write(joinHead(head))
    else {
      this.done = false
      this.#body = body
      this.#offset = 0
      this.#socket.cork()
      this.#socket.write(joinHead(head))
      this.#writeSlice(body)
      this.#socket.uncork()
    }
  }

  #writeJoined({ prefix, rest }: RequestHead, body: Uint8Array | null): void {
    const { buffer } = this.#writeBuffer
    buffer.set(prefix.bytes, 0)
    let end = prefix.bytes.length
    end += buffer.write(rest, end, 'latin1')
    if (body !== null) {
      buffer.set(body, end)
      end += body.length
    }
    this.#socket.write(buffer.subarray(0, end))
    // Not taken at once: the socket's queue still points into the buffer, so that the next request needs another.
    if (this.#socket.writableLength > 0)
      this.#writeBuffer.buffer = Buffer.allocUnsafeSlow(JOINED_REQUEST_BYTES)
  }

  #writeSlice(body: Uint8Array): void {
    const to = Math.min(body.length, this.#offset + BODY_SLICE_BYTES)
    const slice = body.subarray(this.#offset, to)
    this.#offset = to
    if (to === body.length) {
      this.#body = null
      this.done = true
    }
    this.#socket.write(slice, (error) => {
      if (error || this.#socket.destroyed) return
      this.#onTaken()
      if (this.#body === body) this.#writeSlice(body)
    })
  }
}
