/**
 * Reads the body of one request no faster than its reader: while the reader is behind, the connection is paused. The
 * rest of an unwanted body is discarded, so that its client gets to read the answer.
 */

import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { copyPiece, pauseAfterTurn, restartTimeout, SLOW_UPLOAD_MS } from '../request-reader.ts'
import type { HttpResponse } from '../uws.ts'

export class BodyTooLarge extends Error {}

interface UploadOptions {
  readonly limitBytes: number
  /** Returns true when the reply is over or the client has left: the response is no longer touched. */
  readonly isClosed: () => boolean
}

export class Upload extends Readable {
  readonly #response: HttpResponse
  readonly #isClosed: () => boolean
  #length = 0
  #isWhole = false
  /** The reader has not taken what came. */
  #isBehind = false
  #isPaused = false
  readonly #slowUntil = performance.now() + SLOW_UPLOAD_MS

  constructor(response: HttpResponse, { limitBytes, isClosed }: UploadOptions) {
    super()
    this.#response = response
    this.#isClosed = isClosed
    // The client may leave before anything reads the body.
    this.on('error', () => undefined)
    response.onData((piece, isLast) => this.#take(piece, isLast, limitBytes))
  }

  /** All of the body has arrived, wanted or not. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  #take(piece: ArrayBuffer, isLast: boolean, limitBytes: number): void {
    this.#isWhole = isLast
    if (this.destroyed) return
    this.#length += piece.byteLength
    if (this.#length > limitBytes) {
      this.destroy(new BodyTooLarge())
      return
    }
    const wantsMore = piece.byteLength === 0 || this.push(copyPiece(piece))
    if (isLast) this.push(null)
    else if (!wantsMore) this.#pause()
    else if (performance.now() < this.#slowUntil) restartTimeout(this.#response)
  }

  /** Pauses the connection; the server counts no time-out of a paused one. */
  #pause(): void {
    if (this.#isBehind) return
    this.#isBehind = true
    pauseAfterTurn(this.#response, () => {
      this.#isPaused = this.#isBehind && !this.#isWhole && !this.#isClosed()
      return this.#isPaused
    })
  }

  #resume(): void {
    this.#isBehind = false
    if (!this.#isPaused || this.#isClosed()) return
    this.#isPaused = false
    this.#response.resume()
  }

  override _read(): void {
    this.#resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#resume()
    done(error)
  }
}
