/** An upstream's answer with an error status: its body says why. */
import type { Buffer } from 'node:buffer'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders } from '../../../src/upstream/client.ts'
import { type AttemptFailure, refusedByUpstream } from '../../calls/upstream-error.ts'
import { NOTHING_METERED } from './call-record.ts'
import { Collected } from './collected.ts'

const MAX_ERROR_BODY_BYTES = 65_536

interface ErrorHead {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly route: Pick<Route, 'channel'>
}

export class ErrorAnswer {
  readonly #call: { failed(failure: AttemptFailure): void }
  readonly #head: ErrorHead
  readonly #body = new Collected()

  constructor(call: { failed(failure: AttemptFailure): void }, head: ErrorHead) {
    this.#call = call
    this.#head = head
  }

  metered(): Metered {
    return NOTHING_METERED
  }

  data(bytes: Buffer): void {
    this.#body.add(bytes)
    // No error text is this long: what more there is need not be waited for.
    if (this.#body.length > MAX_ERROR_BODY_BYTES) this.end()
  }

  end(): void {
    const { status, headers, route } = this.#head
    const retryAfter = headers.get('retry-after') ?? null
    this.#call.failed(refusedByUpstream(route.channel, status, this.#body.all(), retryAfter))
  }

  /** Ends the attempt: the status suffices, even where its body was cut off. */
  broken(): void {
    this.end()
  }
}
