/** The interface of the HTTP client for upstreams. README.md says what it does and why it is not a library. */
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from './connection/active-call.ts'
import { Connections, type UpstreamClientOptions, type UpstreamStats } from './connection/connections.ts'

export type { UpstreamCall, UpstreamHandler, UpstreamRequest } from './connection/active-call.ts'
export type { UpstreamClientOptions } from './connection/connections.ts'
export { type Origin, parseOrigin } from './connection/origin.ts'
export { UpstreamFailure, type UpstreamFailureKind } from './failure.ts'
export { buildHeadPrefix, finishHead, type HeadPrefix, renderHead } from './request/head.ts'
export type { ResponseHeaders } from './response/headers.ts'

/**
 * HTTP/1.1 keep-alive client. Never retries what was sent; replaces a kept connection silently when it was closed before
 * the first byte went out.
 */
export class UpstreamClient {
  readonly #connections: Connections

  constructor(options: UpstreamClientOptions = {}) {
    this.#connections = new Connections(options)
  }

  /** Starts a call. Reports to the handler only, never during `send`; also a call that is refused here. */
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    return this.#connections.send(request, handler)
  }

  readStats(): Readonly<UpstreamStats> {
    return this.#connections.readStats()
  }

  /** Fails what is in flight, closes every connection, and refuses further calls. */
  close(): void {
    this.#connections.close()
  }
}
