/** A request, from its head until its answer is over. */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { type Observer, type Subscription, take } from 'rxjs'
import { newId } from '../core/keys/ids.ts'
import type { Upload } from './body/upload.ts'
import { type ClientLimits, type ClientSource, HeldBytes } from './client-limits.ts'
import type { FormContent, FullReply, GatewayRequest, Reply } from './handler.ts'
import { type AnsweredRequest, ReplyWriter } from './reply-writer.ts'
import { readPeer, run } from './request-checks.ts'
import type { CopiedHead } from './request-reader.ts'
import type { FoundRoute, Route } from './router.ts'
import type { HttpResponse } from './uws.ts'

/** The server as a request needs it. */
export interface ArrivalServer {
  readonly clients: ClientLimits
  /** Returns whether more requests come at once than clients send that read their answers. */
  isCrowded(): boolean
  renderError(error: unknown, arrival: Arrival): FullReply
  /** Called once, when the request is over. */
  end(arrival: Arrival): void
}

export class Arrival implements AnsweredRequest {
  readonly response: HttpResponse
  readonly head: CopiedHead
  readonly commonHeaders: Uint8Array
  readonly submittedAt = Date.now()
  readonly startedAt = performance.now()
  readonly requestId = newId('req', this.submittedAt)
  readonly client: ClientSource
  readonly held: HeldBytes
  readonly address: () => string
  readonly writer: ReplyWriter
  readonly #params: FoundRoute['params']
  readonly #server: ArrivalServer
  upload: Upload | null = null
  isWhole = false
  isPaused = false
  #subscription: Subscription | null = null

  constructor(
    response: HttpResponse,
    head: CopiedHead,
    { commonHeaders, params }: Pick<Arrival, 'commonHeaders'> & Pick<FoundRoute, 'params'>,
    server: ArrivalServer,
  ) {
    const { clients } = server
    this.response = response
    this.head = head
    this.commonHeaders = commonHeaders
    this.#params = params
    this.#server = server
    const client = { peer: () => readPeer(response), forwardedFor: head.header('x-forwarded-for') }
    this.client = client
    this.held = new HeldBytes(clients, client)
    // A call keeps this until it is settled, so it must not hold the arrival.
    this.address = () => clients.findAddress(client)
    this.writer = new ReplyWriter(this)
  }

  get isHead(): boolean {
    return this.head.method === 'HEAD'
  }

  get closesConnection(): boolean {
    return this.head.isChunked
  }

  isBodyWhole(): boolean {
    return this.isWhole || this.upload?.isWhole === true
  }

  isCrowded(): boolean {
    return this.#server.isCrowded()
  }

  renderError(error: unknown): FullReply {
    return this.#server.renderError(error, this)
  }

  onClosed(): void {
    this.held.close()
    this.#server.end(this)
  }

  /** The rest of the body is discarded: a client reads its answer when it has sent all. */
  onFirstByte(): void {
    this.held.release()
    this.upload?.destroy()
    this.unpause()
  }

  unpause(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.response.resume()
  }

  abort(): void {
    this.writer.abort()
    this.upload?.destroy(new Error('the client is gone'))
    this.#subscription?.unsubscribe()
  }

  /** Subscribes to the replies of the handler, once. */
  run(route: Route, body: Buffer, form: FormContent | null, answer: Observer<Reply> = this.writer): void {
    const { requestId, address, submittedAt, startedAt, writer } = this
    const { method, path, query, header, hasHeader } = this.head
    const request: GatewayRequest = {
      requestId,
      method,
      path,
      params: this.#params,
      query,
      header,
      hasHeader,
      body,
      form,
      address,
      submittedAt,
      startedAt,
    }
    const replies = run(route.handler, request)
    this.#subscription = (method === 'HEAD' ? replies.pipe(take(1)) : replies).subscribe(answer)
    if (writer.isClosed) this.#subscription.unsubscribe()
  }
}
