/**
 * Decides for all processes: its own requests at once, those of other processes by message. Before a request is
 * refused for slots that other processes hold, the arbiter asks them for released slots: a client whose last request
 * is over must not be refused because of it.
 */
import {
  type LimitAnswers,
  type LimitAsks,
  type LimitMessage,
  MAX_LIMIT_ROWS,
} from '../../schemas/accounts/limits.ts'
import type { Decision, LimiterState, SlotCounts, SubjectLimits } from '../core/limits/limiter-state.ts'
import { admits, type LimitedRequest } from './limited-request.ts'

/** A process that does not report its released slots in this time keeps the slots last known. */
const FLUSH_BOUND_MS = 100

interface ArbiterOptions {
  readonly self: string
  readonly state: LimiterState
  readonly now: () => number
  readonly send: (to: string, message: LimitMessage) => void
  /** Called with the decisions on a request of this process. */
  readonly onOwnDecisions: (request: LimitedRequest, decisions: readonly Decision[]) => void
}

interface PendingRequest {
  readonly holder: string
  readonly subjects: readonly SubjectLimits[]
  /** A request of this process, or the serial number of another's. */
  readonly request: LimitedRequest | number
}

/** Requests that wait for these processes to report their released slots. */
interface Round {
  pending: PendingRequest[]
  readonly holders: Set<string>
}

/** Slots granted to a process in message `number`. */
interface Grant {
  readonly number: number
  readonly subjects: readonly SubjectLimits[]
  readonly at: number
}

export class Arbiter {
  readonly #options: ArbiterOptions
  #isOpen = false
  /** Requests that come in before the arbiter opens. */
  #queue: PendingRequest[] = []
  #round: Round | null = null
  #roundTimer: NodeJS.Timeout | undefined
  #nextRound: Round = emptyRound()
  #token = 0
  /** Number of the last message with answers; one sequence for all processes. */
  #number = 0
  readonly #unsent = new Map<string, LimitAnswers['answers']>()
  /** Grants in messages that their process may not have read yet, by process and serial number. */
  readonly #grants = new Map<string, Map<number, Grant>>()

  constructor(options: ArbiterOptions) {
    this.#options = options
  }

  open(): void {
    this.#isOpen = true
    for (const pending of this.#queue.splice(0)) this.#decide(pending)
    this.#sendAnswers()
  }

  /** Returns the waiting requests of this process; other processes ask again themselves. */
  close(): LimitedRequest[] {
    const waiting = [...this.#queue, ...(this.#round?.pending ?? []), ...this.#nextRound.pending]
    this.#isOpen = false
    this.#queue = []
    this.#nextRound = emptyRound()
    this.#endRound()
    this.#unsent.clear()
    this.#grants.clear()
    return waiting.flatMap(({ request }) => (typeof request === 'number' ? [] : [request]))
  }

  ask(request: LimitedRequest): void {
    this.#take({ holder: this.#options.self, subjects: request.subjects, request })
  }

  onAsks({ from, asks, released, withdrawn }: LimitAsks): void {
    for (const [subject, count] of released) this.#options.state.release(subject, from, count)
    if (withdrawn.length > 0) this.#withdraw(from, new Set(withdrawn))
    for (let at = 0; at < asks.length; ) {
      const [request] = asks[at]!
      const subjects: SubjectLimits[] = []
      for (; asks[at]?.[0] === request; at++) subjects.push(describeSubject(asks[at]!))
      this.#take({ holder: from, subjects, request })
    }
    this.#sendAnswers()
  }

  /** Replaces the slots of a process by those that it held when it had read message `lastNumber`. */
  onSlots(from: string, slots: SlotCounts, lastNumber: number): void {
    const grants = this.#grants.get(from) ?? new Map<number, Grant>()
    const all = new Map(slots)
    for (const [serial, { number, subjects }] of grants)
      if (number <= lastNumber) grants.delete(serial)
      else
        for (const { subject, limits } of subjects)
          if (limits.concurrency !== null) all.set(subject, (all.get(subject) ?? 0) + 1)
    this.#options.state.setSlots(from, all)
  }

  onFlushed(from: string, token: number): void {
    if (token === this.#token) this.#onHolderReported(from)
  }

  /** Removes a process that has ended, with its waiting requests: it could not give back their slots. */
  onProcessLost(process: string): void {
    this.#forget(({ holder }) => holder === process)
    this.#unsent.delete(process)
    this.#grants.delete(process)
    this.#nextRound.holders.delete(process)
    this.#onHolderReported(process)
  }

  #withdraw(from: string, serials: ReadonlySet<unknown>): void {
    this.#forget(({ holder, request }) => holder === from && serials.has(request))
    for (const [serial, { subjects, at }] of this.#grants.get(from) ?? []) {
      if (!serials.has(serial)) continue
      this.#grants.get(from)!.delete(serial)
      for (const { subject, limits } of subjects) this.#options.state.withdraw(subject, limits, from, at)
    }
  }

  #forget(isOver: (asked: PendingRequest) => boolean): void {
    const stays = (pending: PendingRequest) => !isOver(pending)
    this.#queue = this.#queue.filter(stays)
    this.#nextRound.pending = this.#nextRound.pending.filter(stays)
    if (this.#round !== null) this.#round.pending = this.#round.pending.filter(stays)
  }

  #take(pending: PendingRequest): void {
    if (this.#isOpen) this.#decide(pending)
    else this.#queue.push(pending)
  }

  #decide(pending: PendingRequest, isLast = false): void {
    const { state, now, self } = this.#options
    const { holder, subjects, request } = pending
    if (typeof request !== 'number' && request.isClosed) return
    const at = now()
    const decisions = state.decide(subjects, holder, at)
    if (!isLast && isForWantOfSlots(decisions)) {
      const full = subjects.filter((_, index) => decisions[index]!.refusedBy === 'concurrency')
      const doubtful = full
        .flatMap(({ subject }) => state.listHolders(subject))
        .filter((other) => other !== self && other !== holder)
      if (doubtful.length > 0) return this.#confirmSlots(pending, doubtful)
    }
    if (typeof request !== 'number') this.#options.onOwnDecisions(request, decisions)
    else this.#answer(pending, request, decisions, at)
  }

  #answer(
    { holder, subjects }: PendingRequest,
    serial: number,
    decisions: readonly Decision[],
    at: number,
  ): void {
    const rows = this.#unsent.get(holder) ?? []
    for (const { refusedBy, remainingRequests, resetMs, remainingConcurrency } of decisions)
      rows.push([serial, refusedBy, remainingRequests, resetMs, remainingConcurrency])
    this.#unsent.set(holder, rows)
    if (admits(decisions)) {
      const grants = this.#grants.get(holder) ?? new Map<number, Grant>()
      grants.set(serial, { number: this.#number + 1, subjects, at })
      this.#grants.set(holder, grants)
    }
    if (rows.length >= MAX_LIMIT_ROWS) this.#sendAnswers()
  }

  #sendAnswers(): void {
    if (this.#unsent.size === 0) return
    const { self, send } = this.#options
    const number = ++this.#number
    for (const [holder, answers] of this.#unsent)
      send(holder, { type: 'answers', from: self, number, answers })
    this.#unsent.clear()
  }

  #confirmSlots(pending: PendingRequest, holders: readonly string[]): void {
    this.#nextRound.pending.push(pending)
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

  #onHolderReported(process: string): void {
    if (this.#round?.holders.delete(process) && this.#round.holders.size === 0) this.#decideRound()
  }

  #decideRound(): void {
    const { pending } = this.#round!
    this.#endRound()
    for (const one of pending) this.#decide(one, true)
    this.#sendAnswers()
    if (this.#round === null && this.#nextRound.pending.length > 0) this.#startRound()
  }

  #endRound(): void {
    clearTimeout(this.#roundTimer)
    this.#round = null
  }
}

const describeSubject = ([
  ,
  subject,
  requestsPerMinute,
  concurrency,
]: LimitAsks['asks'][number]): SubjectLimits => ({
  subject,
  limits: { requestsPerMinute, concurrency },
})

/** Returns whether nothing but slots is missing. */
const isForWantOfSlots = (decisions: readonly Decision[]): boolean =>
  !admits(decisions) && decisions.every(({ refusedBy }) => refusedBy !== 'requests')

const emptyRound = (): Round => ({ pending: [], holders: new Set() })
