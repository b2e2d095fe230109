/** Reads a request's body: bounded, and slowly where that is the fault asked for. */

import type { IncomingMessage } from 'node:http'
import { DEFAULT_SLOW_READ_MS } from '../directives/faults.ts'

/** 64 MiB of files, written as data URIs, and what stands around them. */
const MAX_BODY_BYTES = 96 * 1024 * 1024
/** Found in the first bytes that arrive, for the body's own directives cannot be read before it has been. */
const SLOW_READ_IN_BODY = /fault"?\s*[=:]\s*"?slow_read(?::(\d{1,5}))?/

export class BodyTooLargeError extends Error {}

/**
 * The whole body. Before it goes on reading it pauses for `pauseMs`, or for as long as a `slow_read` in the
 * first bytes of the body says.
 *
 * @throws {BodyTooLargeError} beyond 96 MiB; the rest of the body is discarded.
 * @throws {Error} when the caller leaves before its end.
 */
export function readBody(request: IncomingMessage, pauseMs: number | null): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let timer: NodeJS.Timeout | undefined

    const pause = (ms: number) => {
      request.pause()
      timer = setTimeout(() => request.resume(), ms)
    }
    request.on('data', (chunk: Buffer) => {
      if (bytes === 0 && pauseMs === null) {
        const found = chunk.includes('slow_read') ? SLOW_READ_IN_BODY.exec(chunk.toString('latin1')) : null
        if (found !== null) pause(Number(found[1] ?? DEFAULT_SLOW_READ_MS))
      }
      bytes += chunk.length
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
      else chunks.length = 0
    })
    request.once('end', () => {
      if (bytes > MAX_BODY_BYTES)
        reject(new BodyTooLargeError(`The body is larger than ${MAX_BODY_BYTES} bytes.`))
      else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    })
    request.once('close', () => {
      clearTimeout(timer)
      if (!request.complete) reject(new Error('The caller left before the end of its request.'))
    })
    request.once('error', reject)
    if (pauseMs !== null) pause(pauseMs)
  })
}
