/**
 * The leader's desk: verdicts for its own requests at once, for those of other processes by letter. Before a request
 * is refused for slots that other processes hold, these are asked what has been released: a client whose last request
 * is over must not be told that it is still under way.
 */
import {
  type LimitAnswers,
  type LimitAsks,
  type LimitMessage,
  MAX_LIMIT_ROWS,
} from '../../schemas/accounts/limits.ts'
import type { Decision, LimiterState, Limits, SlotCounts } from '../../src/core/limits/limiter-state.ts'
import type { LimitedRequest } from './limited-request.ts'

/** A process that does not say in this time what it has released holds what was believed. */
const FLUSH_BOUND_MS = 100

export interface OfficeOptions {
  readonly self: string
  readonly book: LimiterState
  readonly now: () => number
  readonly send: (to: string, message: LimitMessage) => void
  /** A verdict on a request of this process. */
  readonly onOwn: (request: LimitedRequest, decision: Decision) => void
}

interface Asked {
  readonly holder: string
  readonly subject: string
  readonly limits: Limits
  /** A request of this process, or the serial number of another's. */
  readonly request: LimitedRequest | number
}

/** Requests that wait for these processes to say what they have released. */
interface Round {
  asked: Asked[]
  readonly holders: Set<string>
}

/** What was given to a process in letter `number`. */
interface Given {
  readonly number: number
  readonly subject: string
  readonly limits: Limits
  readonly at: number
}

export class Office {
  readonly #options: OfficeOptions
  #isOpen = false
  /** What comes in before the office opens. */
  #queue: Asked[] = []
  #round: Round | null = null
  #roundTimer: NodeJS.Timeout | null = null
  #nextRound: Round = emptyRound()
  #token = 0
  /** Number of the last letter with answers; one sequence for all processes. */
  #number = 0
  readonly #unsent = new Map<string, LimitAnswers['answers']>()
  /** What was given in letters that their process may not have read yet, by process and serial number. */
  readonly #given = new Map<string, Map<number, Given>>()

  constructor(options: OfficeOptions) {
    this.#options = options
  }

  open(): void {
    this.#isOpen = true
    for (const asked of this.#queue.splice(0)) this.#decide(asked)
    this.#sendAnswers()
  }

  /** Answers with the requests of this process that still wait; those of others are asked again by themselves. */
  close(): LimitedRequest[] {
    const waiting = [...this.#queue, ...(this.#round?.asked ?? []), ...this.#nextRound.asked]
    this.#isOpen = false
    this.#queue = []
    this.#nextRound = emptyRound()
    this.#endRound()
    this.#unsent.clear()
    this.#given.clear()
    return waiting.flatMap(({ request }) => (typeof request === 'number' ? [] : [request]))
  }

  ask(request: LimitedRequest): void {
    const { subject, limits } = request
    this.#take({ holder: this.#options.self, subject, limits, request })
  }

  heardAsks({ from, asks, released, withdrawn }: LimitAsks): void {
    for (const [subject, count] of released) this.#options.book.release(subject, from, count)
    if (withdrawn.length > 0) this.#withdraw(from, new Set(withdrawn))
    for (const [serial, subject, requestsPerMinute, concurrency] of asks)
      this.#take({ holder: from, subject, limits: { requestsPerMinute, concurrency }, request: serial })
    this.#sendAnswers()
  }

  /** All that a process holds, as it was when it had read our letter `heard`. */
  heardSlots(from: string, slots: SlotCounts, heard: number): void {
    const given = this.#given.get(from) ?? new Map<number, Given>()
    const all = new Map(slots)
    for (const [serial, { number, subject, limits }] of given)
      if (number <= heard) given.delete(serial)
      else if (limits.concurrency !== null) all.set(subject, (all.get(subject) ?? 0) + 1)
    this.#options.book.setSlots(from, all)
  }

  heardFlushed(from: string, token: number): void {
    if (token === this.#token) this.#heardOf(from)
  }

  /** The process is no more. What it asked is forgotten: nobody would give back what it was given. */
  lost(process: string): void {
    this.#forget(({ holder }) => holder === process)
    this.#unsent.delete(process)
    this.#given.delete(process)
    this.#nextRound.holders.delete(process)
    this.#heardOf(process)
  }

  #withdraw(from: string, serials: ReadonlySet<unknown>): void {
    this.#forget(({ holder, request }) => holder === from && serials.has(request))
    for (const [serial, { subject, limits, at }] of this.#given.get(from) ?? []) {
      if (!serials.has(serial)) continue
      this.#given.get(from)!.delete(serial)
      this.#options.book.withdraw(subject, limits, from, at)
    }
  }

  #forget(isOver: (asked: Asked) => boolean): void {
    const stays = (asked: Asked) => !isOver(asked)
    this.#queue = this.#queue.filter(stays)
    this.#nextRound.asked = this.#nextRound.asked.filter(stays)
    if (this.#round !== null) this.#round.asked = this.#round.asked.filter(stays)
  }

  #take(asked: Asked): void {
    if (this.#isOpen) this.#decide(asked)
    else this.#queue.push(asked)
  }

  #decide(asked: Asked, isLast = false): void {
    const { book, now, self } = this.#options
    const { holder, subject, limits, request } = asked
    if (typeof request !== 'number' && request.isClosed) return
    const at = now()
    const decision = book.decide(subject, limits, holder, at)
    if (decision.refusedBy === 'concurrency' && !isLast) {
      const doubtful = book.holdersOf(subject).filter((other) => other !== self && other !== holder)
      if (doubtful.length > 0) return this.#ascertain(asked, doubtful)
    }
    if (typeof request !== 'number') this.#options.onOwn(request, decision)
    else this.#answer(asked, request, decision, at)
  }

  #answer({ holder, subject, limits }: Asked, serial: number, decision: Decision, at: number): void {
    const { refusedBy, remainingRequests, resetMs, remainingConcurrency } = decision
    const rows = this.#unsent.get(holder) ?? []
    rows.push([serial, refusedBy, remainingRequests, resetMs, remainingConcurrency])
    this.#unsent.set(holder, rows)
    if (refusedBy === null) {
      const given = this.#given.get(holder) ?? new Map<number, Given>()
      given.set(serial, { number: this.#number + 1, subject, limits, at })
      this.#given.set(holder, given)
    }
    if (rows.length === MAX_LIMIT_ROWS) this.#sendAnswers()
  }

  #sendAnswers(): void {
    if (this.#unsent.size === 0) return
    const { self, send } = this.#options
    const number = ++this.#number
    for (const [holder, answers] of this.#unsent)
      send(holder, { type: 'answers', from: self, number, answers })
    this.#unsent.clear()
  }

  #ascertain(asked: Asked, holders: readonly string[]): void {
    this.#nextRound.asked.push(asked)
    for (const holder of holders) this.#nextRound.holders.add(holder)
    if (this.#round === null) this.#startRound()
  }

  #startRound(): void {
    const round = this.#nextRound
    this.#round = round
    this.#nextRound = emptyRound()
    this.#token++
    if (round.holders.size === 0) return this.#decideRound()
    this.#roundTimer = setTimeout(() => this.#decideRound(), FLUSH_BOUND_MS).unref()
    const { self, send } = this.#options
    for (const holder of round.holders) send(holder, { type: 'flush', from: self, token: this.#token })
  }

  #heardOf(process: string): void {
    if (this.#round?.holders.delete(process) && this.#round.holders.size === 0) this.#decideRound()
  }

  #decideRound(): void {
    const asked = this.#round?.asked ?? []
    this.#endRound()
    for (const one of asked) this.#decide(one, true)
    this.#sendAnswers()
    if (this.#round === null && this.#nextRound.asked.length > 0) this.#startRound()
  }

  #endRound(): void {
    if (this.#roundTimer !== null) clearTimeout(this.#roundTimer)
    this.#roundTimer = null
    this.#round = null
  }
}

const emptyRound = (): Round => ({ asked: [], holders: new Set() })
