import type { HttpResponse } from 'uWebSockets.js'
import {
  buildHeadPrefix,
  finishHead,
  parseOrigin,
  type ResponseHeaders,
  UpstreamClient,
  type UpstreamHandler,
} from '../../src/upstream/client.ts'
import { type BareCall, sendPorts, serveBare } from './bare-server.ts'

/**
 * Tollgate's server library and upstream client, and nothing else: the lower bound of what a call through Tollgate can
 * cost.
 *
 * Arguments: the upstream's origins, each of which gets a port. Sends them to its parent, and ends with it.
 */

const DEADLINE_MS = 180_000

const client = new UpstreamClient()

/** Ignores back-pressure, because the bench's client reads as fast as it can. */
class Reply implements UpstreamHandler {
  readonly #response: HttpResponse
  /** The head leaves with the first data. */
  #contentType: string | null = null
  isAborted = false

  constructor(response: HttpResponse) {
    this.#response = response
  }

  onHead(_status: number, headers: ResponseHeaders): void {
    this.#contentType = headers.get('content-type') ?? ''
  }

  onData(bytes: Uint8Array): void {
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.write(bytes)
    })
  }

  onEnd(): void {
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.end()
    })
  }

  onError(): void {
    if (!this.isAborted) this.#response.close()
  }

  #writeHead(): void {
    if (this.#contentType === null) return
    this.#response.writeHeader('content-type', this.#contentType)
    this.#contentType = null
  }
}

const proxyTo = (url: string): Promise<number> => {
  const { origin } = parseOrigin(url)
  const prefix = buildHeadPrefix('POST', '/v1/chat/completions', new URL(url).host, [
    ['content-type', 'application/json'],
  ])
  const begin = (response: HttpResponse, body: Buffer): BareCall => {
    const reply = new Reply(response)
    const head = finishHead(prefix, body.length)
    const call = client.send({ origin, head, body, deadlineMs: DEADLINE_MS }, reply)
    return {
      abort() {
        reply.isAborted = true
        call.abort()
      },
    }
  }
  return serveBare(begin)
}

sendPorts(await Promise.all(process.argv.slice(2).map(proxyTo)))
