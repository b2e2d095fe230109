/** A request, from its head until its answer is over. */
import type { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { type Observer, type Subscription, take } from 'rxjs'
import { newId } from '../core/keys/ids.ts'
import type { Upload } from './body/upload.ts'
import { type ClientLimits, type ClientSource, HeldBytes } from './client-limits.ts'
import type { FormContent, GatewayRequest, Reply } from './handler.ts'
import type { ReplyWriter } from './reply-writer.ts'
import { readPeer, run } from './request-checks.ts'
import type { CopiedHead } from './request-reader.ts'
import { NO_PARAMS, type Route } from './router.ts'
import type { HttpResponse } from './uws.ts'

export class Arrival {
  readonly response: HttpResponse
  readonly head: CopiedHead
  readonly submittedAt = Date.now()
  readonly startedAt = performance.now()
  readonly requestId = newId('req', this.submittedAt)
  readonly client: ClientSource
  readonly held: HeldBytes
  readonly address: () => string
  writer!: ReplyWriter
  params = NO_PARAMS
  upload: Upload | null = null
  isWhole = false
  isPaused = false
  #subscription: Subscription | null = null

  constructor(response: HttpResponse, head: CopiedHead, clients: ClientLimits) {
    this.response = response
    this.head = head
    const client = { peer: () => readPeer(response), forwardedFor: head.header('x-forwarded-for') }
    this.client = client
    this.held = new HeldBytes(clients, client)
    // A call keeps this until it is settled, so it must not hold the arrival.
    this.address = () => clients.findAddress(client)
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
    const { requestId, params, address, submittedAt, startedAt, writer } = this
    const { method, path, query, header, hasHeader } = this.head
    const request: GatewayRequest = {
      requestId,
      method,
      path,
      params,
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
