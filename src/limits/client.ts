/** Sends requests for decisions and releases to the leader: once for each turn of the event loop. */
import { type LimitAsks, MAX_LIMIT_ROWS } from '../../schemas/accounts/limits.ts'
import type { Decision } from '../core/limits/limiter-state.ts'
import type { LimitedRequest } from './limited-request.ts'

/** After this a request is decided here. A leader that ends is replaced sooner. */
const ANSWER_BOUND_MS = 1_000
const SWEEP_INTERVAL_MS = 100

interface ArbiterClientOptions {
  readonly now: () => number
  readonly send: (leader: string, asks: Pick<LimitAsks, 'asks' | 'released' | 'withdrawn'>) => void
  /** Called when answers are overdue: NATS reports no error for a message to a process that just ended. */
  readonly onSlow: () => void
  /** Called when no answer came in time. */
  readonly onTimeout: (request: LimitedRequest) => void
}

interface Waiting {
  readonly request: LimitedRequest
  /** One for each subject that is answered. */
  readonly decisions: Decision[]
  readonly since: number
}

/** Returns how many rows go into one message: those of one request stay together. */
function countWholeRequests(asks: LimitAsks['asks']): number {
  let count = Math.min(asks.length, MAX_LIMIT_ROWS)
  while (count < asks.length && asks[count]![0] === asks[count - 1]![0]) count--
  return count
}

export class ArbiterClient {
  readonly #options: ArbiterClientOptions
  #leader: string | null = null
  #serial = 0
  /** By serial number, in order. */
  readonly #waiting = new Map<number, Waiting>()
  /** Serial numbers that the leader has not been sent. */
  #unsent = new Set<number>()
  readonly #released = new Map<string, number>()
  /** Serial numbers that the leader has, and that no longer wait. */
  #withdrawn: number[] = []
  #isFlushComing = false
  #isSweepComing = false

  constructor(options: ArbiterClientOptions) {
    this.#options = options
  }

  ask(request: LimitedRequest): void {
    const serial = ++this.#serial
    this.#waiting.set(serial, { request, decisions: [], since: this.#options.now() })
    this.#unsent.add(serial)
    this.#flushSoon()
    this.#sweepLater()
  }

  /** Reports a released slot to the leader. A later leader gets a report of all slots held. */
  release(subject: string): void {
    this.#released.set(subject, (this.#released.get(subject) ?? 0) + 1)
    this.#flushSoon()
  }

  /** Sends waiting requests to the new leader, and nothing more to the former one. */
  follow(leader: string | null): void {
    this.#leader = leader
    this.#released.clear()
    this.#withdrawn = []
    for (const { decisions } of this.#waiting.values()) decisions.length = 0
    this.#unsent = new Set(this.#waiting.keys())
    this.#flushSoon()
  }

  flush(): void {
    const leader = this.#leader
    if (leader === null) return
    const asks: LimitAsks['asks'] = []
    for (const serial of this.#unsent) {
      const { request } = this.#waiting.get(serial)!
      if (request.isClosed) this.#waiting.delete(serial)
      else
        for (const { subject, limits } of request.subjects)
          asks.push([serial, subject, limits.requestsPerMinute, limits.concurrency])
    }
    const released = [...this.#released]
    const withdrawn = this.#withdrawn
    this.#unsent.clear()
    this.#withdrawn = []
    this.#released.clear()
    while (asks.length > 0 || released.length > 0 || withdrawn.length > 0)
      this.#options.send(leader, {
        asks: asks.splice(0, countWholeRequests(asks)),
        released: released.splice(0, MAX_LIMIT_ROWS),
        withdrawn: withdrawn.splice(0, MAX_LIMIT_ROWS),
      })
  }

  /** Returns the request of an answer, once each of its subjects is answered; null when it no longer waits. */
  takeAnswered(serial: number, decision: Decision): Pick<Waiting, 'request' | 'decisions'> | null {
    const waiting = this.#waiting.get(serial)
    if (waiting === undefined) return null
    waiting.decisions.push(decision)
    if (waiting.decisions.length < waiting.request.subjects.length) return null
    this.#waiting.delete(serial)
    return waiting
  }

  /** Returns the waiting requests, to be decided by other means. */
  takeAll(): LimitedRequest[] {
    const requests = [...this.#waiting.values()].map(({ request }) => request)
    this.#waiting.clear()
    return requests
  }

  #flushSoon(): void {
    if (this.#isFlushComing) return
    this.#isFlushComing = true
    setImmediate(() => {
      this.#isFlushComing = false
      this.flush()
    })
  }

  #sweepLater(): void {
    if (this.#isSweepComing) return
    this.#isSweepComing = true
    const plannedAt = this.#options.now()
    setTimeout(() => {
      this.#isSweepComing = false
      // After a pause of this process answers may lie unread: they are read before the next sweep.
      if (this.#options.now() - plannedAt <= 2 * SWEEP_INTERVAL_MS) this.#expire()
      if (this.#waiting.size > 0) this.#sweepLater()
    }, SWEEP_INTERVAL_MS).unref()
  }

  #expire(): void {
    const now = this.#options.now()
    for (const [serial, { request, since }] of this.#waiting) {
      if (now - since < ANSWER_BOUND_MS) {
        if (now - since > SWEEP_INTERVAL_MS / 2) this.#options.onSlow()
        break
      }
      this.#waiting.delete(serial)
      if (!this.#unsent.delete(serial)) this.#withdrawn.push(serial)
      this.#options.onTimeout(request)
    }
    this.#flushSoon()
  }
}
