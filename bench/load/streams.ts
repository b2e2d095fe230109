import type { Profile } from '../upstream/replies.ts'
import { Connection, type Expectation } from './connection.ts'
import { type Endpoint, requestBytes } from './request.ts'

/** Streams that open evenly over time and run until they end. */
export interface StreamsPlan {
  endpoint: Endpoint
  profile: Profile
  expected: Expectation
  count: number
  opensPerSecond: number
  limitMs: number
}

export interface StreamsProgress {
  /** Events that have arrived so far on all streams together. */
  chunks: number
  /** Streams that have ended. */
  ended: number
}

const TICK_MS = 5

/** Streams in flight. Any wrong stream fails the whole run. */
export class Streams {
  /** Resolves when every stream has its first byte. */
  readonly open: Promise<void>
  /** Resolves when every stream has ended. */
  readonly end: Promise<void>
  readonly #connections: Connection[] = []
  readonly #ticker: NodeJS.Timeout
  readonly #deadline: NodeJS.Timeout
  readonly #opening = Promise.withResolvers<void>()
  readonly #ending = Promise.withResolvers<void>()
  #ended = 0

  constructor(plan: StreamsPlan) {
    this.open = this.#opening.promise
    this.end = this.#ending.promise
    for (const promise of [this.open, this.end]) promise.catch(() => {}) // The caller that awaits it gets the error.
    const request = requestBytes(plan.endpoint, plan.profile)
    const startedAt = performance.now()
    this.#ticker = setInterval(() => {
      const due = Math.min(plan.count, ((performance.now() - startedAt) / 1000) * plan.opensPerSecond)
      while (this.#connections.length < due) this.#openOne(plan, request)
      if (this.#connections.length === plan.count && this.#connections.every(({ begun }) => begun)) {
        clearInterval(this.#ticker)
        this.#opening.resolve()
      }
    }, TICK_MS)
    this.#deadline = setTimeout(
      () => this.#fail(`${this.#ended} of ${plan.count} streams ended in time`),
      plan.limitMs,
    )
  }

  get progress(): StreamsProgress {
    let chunks = 0
    for (const connection of this.#connections) chunks += connection.chunks
    return { chunks, ended: this.#ended }
  }

  abandon(): void {
    clearInterval(this.#ticker)
    clearTimeout(this.#deadline)
    for (const connection of this.#connections) connection.close()
  }

  #openOne(plan: StreamsPlan, request: Buffer): void {
    const connection = new Connection(plan.endpoint, plan.expected, (reason) => this.#fail(reason))
    this.#connections.push(connection)
    connection.call(request, () => {
      connection.close()
      if (++this.#ended < plan.count) return
      this.abandon()
      this.#ending.resolve()
    })
  }

  #fail(reason: string): void {
    this.abandon()
    this.#opening.reject(new Error(reason))
    this.#ending.reject(new Error(reason))
  }
}
