import type { HttpResponse } from 'uWebSockets.js'
import { type Dispatcher, Pool } from 'undici'
import { type BareCall, sendPorts, serveBare } from './bare-server.ts'

/**
 * The lower bound for a gateway of uWebSockets.js and undici. It reads the body, sends it with `dispatch`, and writes the
 * bytes of one upstream read in one corked write. No accounts, no prices, no log.
 *
 * Arguments: the upstream's origin. Sends its port to its parent, and ends with it.
 */

const upstream = new Pool(process.argv[2]!, { pipelining: 1 })

/** Ignores back-pressure, because the bench's client reads as fast as it can. */
class Reply implements Dispatcher.DispatchHandler, BareCall {
  readonly #res: HttpResponse
  #pieces: Buffer[] = []
  #flushing = false
  #ended = false
  #aborted = false
  #controller: Dispatcher.DispatchController | null = null

  constructor(res: HttpResponse) {
    this.#res = res
  }

  abort(): void {
    this.#aborted = true
    this.#controller?.abort(new Error('the client has gone'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#aborted) return
    this.#res.cork(() => {
      this.#res.writeStatus(String(status))
      this.#res.writeHeader('content-type', String(headers['content-type']))
    })
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#pieces.push(piece)
    this.#flushSoon()
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#flushSoon()
  }

  onResponseError(): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#res.close()
  }

  /** undici calls once a chunk; all chunks of one read have come when the microtask runs. */
  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    this.#flushing = false
    if (this.#aborted) return
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#res.cork(() => {
      if (this.#ended) this.#res.end(bytes)
      else this.#res.write(bytes)
    })
  }
}

const begin = (response: HttpResponse, body: Buffer): BareCall => {
  const reply = new Reply(response)
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
  upstream.dispatch({ path: '/v1/chat/completions', method: 'POST', headers, body }, reply)
  return reply
}

sendPorts([await serveBare(begin)])
