import { Samples } from '../harness/statistics.ts'
import type { Profile } from '../upstream/replies.ts'
import { type CallTimes, Connection, type Expectation } from './connection.ts'
import { type Endpoint, requestBytes } from './request.ts'

/** A fixed number of calls: as fast as `connections` of them at a time allow, or at a fixed rate. */
export interface CallsPlan {
  endpoint: Endpoint
  profile: Profile
  expected: Expectation
  connections: number
  count: number
  /** Calls a second, independent of the subject; null sends the next call when one has ended. */
  perSecond: number | null
  limitMs: number
}

/** Quantiles in microseconds. */
interface Quantiles {
  p50: number
  p99: number
}

export interface CallsResult {
  seconds: number
  latencyUs: Quantiles
  /** To the first byte of the body. */
  firstByteUs: Quantiles
}

const quantilesUs = (samples: Samples): Quantiles => {
  const [p50, p99] = samples.quantiles(0.5, 0.99)
  return { p50: p50! * 1000, p99: p99! * 1000 }
}

/** Makes the calls. Rejects at the first response that is not as expected, and at the time limit. */
export const runCalls = (plan: CallsPlan): Promise<CallsResult> => new CallsRun(plan).result

const TICK_MS = 1

class CallsRun {
  readonly #outcome = Promise.withResolvers<CallsResult>()
  readonly result = this.#outcome.promise
  readonly #plan: CallsPlan
  readonly #request: Buffer
  readonly #latency: Samples
  readonly #firstByte: Samples
  readonly #connections: Connection[]
  readonly #idle: Connection[] = []
  /** Due times of calls that found no idle connection. Their wait is part of their latency. */
  readonly #waiting: number[] = []
  #sent = 0
  #ended = 0
  #startedAt = 0
  #ticker: NodeJS.Timeout | undefined
  readonly #deadline: NodeJS.Timeout

  constructor(plan: CallsPlan) {
    this.#plan = plan
    this.#request = requestBytes(plan.endpoint, plan.profile)
    this.#latency = new Samples(plan.count)
    this.#firstByte = new Samples(plan.count)
    const failed = (reason: string): void => this.#fail(new Error(reason))
    this.#connections = Array.from(
      { length: Math.min(plan.connections, plan.count) },
      () => new Connection(plan.endpoint, plan.expected, failed),
    )
    this.#deadline = setTimeout(() => failed(`${this.#ended} of ${plan.count} calls in time`), plan.limitMs)
    void Promise.all(this.#connections.map(({ opened }) => opened)).then(() => this.#start())
  }

  #start(): void {
    this.#startedAt = performance.now()
    if (this.#plan.perSecond === null) {
      for (const connection of this.#connections) this.#send(connection, performance.now())
      return
    }
    this.#idle.push(...this.#connections)
    this.#ticker = setInterval(() => this.#sendDue(), TICK_MS)
  }

  /** Calls start at their tick: a late timer of the load generator does not count for the subject. */
  #sendDue(): void {
    const now = performance.now()
    const due = Math.min(
      this.#plan.count,
      Math.floor(((now - this.#startedAt) / 1000) * this.#plan.perSecond!),
    )
    while (this.#sent + this.#waiting.length < due) {
      const connection = this.#idle.pop()
      if (connection) this.#send(connection, now)
      else this.#waiting.push(now)
    }
  }

  #send(connection: Connection, dueAt: number): void {
    this.#sent++
    connection.call(this.#request, (times) => this.#onEnd(connection, dueAt, times))
  }

  #onEnd(connection: Connection, dueAt: number, { firstByteAt, endAt }: CallTimes): void {
    this.#latency.add(endAt - dueAt)
    this.#firstByte.add(firstByteAt - dueAt)
    if (++this.#ended === this.#plan.count) this.#finish(endAt)
    else if (this.#plan.perSecond !== null) this.#sendWaiting(connection)
    else if (this.#sent < this.#plan.count) this.#send(connection, performance.now())
  }

  #sendWaiting(connection: Connection): void {
    const dueAt = this.#waiting.shift()
    if (dueAt === undefined) this.#idle.push(connection)
    else this.#send(connection, dueAt)
  }

  #finish(endAt: number): void {
    this.#tidy()
    this.#outcome.resolve({
      seconds: (endAt - this.#startedAt) / 1000,
      latencyUs: quantilesUs(this.#latency),
      firstByteUs: quantilesUs(this.#firstByte),
    })
  }

  #fail(error: Error): void {
    this.#tidy()
    this.#outcome.reject(error)
  }

  #tidy(): void {
    clearTimeout(this.#deadline)
    clearInterval(this.#ticker)
    for (const connection of this.#connections) connection.close()
  }
}
