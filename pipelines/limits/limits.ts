/**
 * Limits that hold across all gateway processes. One process leads: it decides its own requests at once, and the
 * others ask it, many requests to a letter. Every process reports each second what it admitted and which slots it
 * holds; so whoever leads next knows the window, and a process that ends leaves no slot behind. While NATS is away
 * each process decides by itself with what it knows. Source: specification, "Rate and concurrency"; decisions, "Rate
 * limits".
 *
 * The leader is whoever leads already, else the oldest process that is there. Where two lead, the older one stays.
 */
import { performance } from 'node:perf_hooks'
import type { LimitAnswers, LimitMessage, LimitReport } from '../../schemas/accounts/limits.ts'
import { type Decision, LimiterState, type Limits } from '../../src/core/limits/limiter-state.ts'
import type { Mailbox, MailboxHandlers } from '../../src/nats/mailbox.ts'
import type { Log } from '../../src/telemetry/log.ts'
import { Office } from './arbiter.ts'
import { Asker } from './client.ts'
import { partsOf, ReportParts, readMessage } from './codec.ts'
import { Tally } from './counter.ts'
import { LimitedRequest, type Permit } from './limited-request.ts'
import { firstOf, Members } from './members.ts'

export type { Permit } from './limited-request.ts'

const REPORT_INTERVAL_MS = 1_000
/** So long a process that has just come listens for others before it leads. */
const JOIN_MS = 300
/** A new leader waits so long for the others' reports. */
const GATHER_BOUND_MS = 500
/** A start waits so long for NATS. */
const START_BOUND_MS = 2_500

export interface LimiterOptions {
  /** One token of a subject. Rises from process to process. */
  readonly self: string
  readonly openMailbox: (handlers: MailboxHandlers) => Mailbox
  readonly log: Pick<Log, 'debug' | 'warn'>
  /** Milliseconds that never go back. */
  readonly now?: () => number
}

export interface Limiter {
  /**
   * `told` is called once, before this returns where this process decides, unless the permit was closed by then.
   * Must not throw. Close the permit when the request is over.
   */
  take(subject: string, limits: Limits, told: (decision: Decision) => void): Permit
  /** Requests in flight, as far as this process knows; exact where it leads. */
  inFlight(subject: string): number
  /** Resolves when it is known who leads, or when that takes too long. */
  joined(): Promise<void>
  /** Tells the others that this process ends. */
  close(): Promise<void>
}

/**
 * alone: NATS is away. joining: it is here, and so may others be. following: a leader is asked, once there is one.
 * gathering: this process will lead when the others have reported.
 */
type Mode = 'alone' | 'joining' | 'following' | 'gathering' | 'leading'

export function openLimiter(options: LimiterOptions): Limiter {
  return new SharedLimiter(options)
}

class SharedLimiter implements Limiter {
  readonly #self: string
  readonly #now: () => number
  readonly #log: LimiterOptions['log']
  readonly #mailbox: Mailbox
  readonly #book = new LimiterState()
  readonly #tally = new Tally()
  readonly #members = new Members()
  readonly #asker: Asker
  readonly #office: Office
  #mode: Mode = 'alone'
  #leader: string | null = null
  /** Number of the leader's last letter with answers. */
  #heard = 0
  /** Who has not reported yet to the leader that this process is about to be. */
  readonly #awaited = new Set<string>()
  readonly #parts = new ReportParts()
  #phaseTimer: NodeJS.Timeout | null = null
  readonly #ticking: NodeJS.Timeout
  #tickedAt: number
  #hasWarned = false
  readonly #joined = Promise.withResolvers<void>()

  constructor({ self, openMailbox, log, now = () => performance.now() }: LimiterOptions) {
    this.#self = self
    this.#now = now
    this.#log = log
    this.#asker = new Asker({
      now,
      send: (leader, asks) => this.#send(leader, { type: 'asks', from: self, ...asks }),
      onSlow: () => (this.#leader === null ? this.#settleLeader() : this.#probe(this.#leader)),
      onLate: (request) => this.#decideHere(request),
    })
    this.#office = new Office({
      self,
      now,
      book: this.#book,
      send: (to, message) => this.#send(to, message),
      onOwn: (request, decision) => this.#settleHere(request, decision),
    })
    this.#mailbox = openMailbox({
      heard: (payload) => this.#received(payload),
      undelivered: (to) => this.#undelivered(to),
      up: () => this.#up(),
      down: () => this.#down(),
    })
    this.#tickedAt = now()
    this.#ticking = setInterval(() => this.#tick(), REPORT_INTERVAL_MS).unref()
    setTimeout(this.#joined.resolve, START_BOUND_MS).unref()
  }

  take(subject: string, limits: Limits, told: (decision: Decision) => void): Permit {
    const request = new LimitedRequest(subject, limits, { told, released: (over) => this.#released(over) })
    this.#ask(request)
    return request
  }

  inFlight(subject: string): number {
    return this.#book.inFlight(subject)
  }

  joined(): Promise<void> {
    return this.#joined.promise
  }

  async close(): Promise<void> {
    clearInterval(this.#ticking)
    if (this.#mode !== 'alone') this.#report({ leaves: true })
    this.#down()
    await this.#mailbox.close()
  }

  #ask(request: LimitedRequest): void {
    if (this.#mode === 'following') this.#asker.ask(request)
    else if (this.#mode === 'gathering' || this.#mode === 'leading') this.#office.ask(request)
    else this.#decideHere(request)
  }

  /** With what this process knows. */
  #decideHere(request: LimitedRequest): void {
    if (request.isClosed) return
    const { subject, limits } = request
    this.#settleHere(request, this.#book.decide(subject, limits, this.#self, this.#now()))
  }

  #settleHere(request: LimitedRequest, decision: Decision): void {
    this.#note(request, decision, this.#self)
    request.settle(decision)
  }

  #note({ subject, limits }: LimitedRequest, { refusedBy }: Decision, by: string): void {
    if (refusedBy === null && limits.requestsPerMinute !== null) this.#tally.add(subject, by, this.#now())
  }

  #released({ subject, limits }: LimitedRequest): void {
    if (limits.concurrency === null) return
    this.#book.release(subject, this.#self)
    if (this.#mode === 'following') this.#asker.released(subject)
  }

  #send(to: string, message: LimitMessage): void {
    this.#mailbox.send(to, JSON.stringify(message))
  }

  #report(about: Partial<Pick<LimitReport, 'calls' | 'leaves' | 'gone'>> = {}): void {
    // What is released goes before the report that says so.
    this.#asker.flush()
    const parts = partsOf({
      type: 'report',
      from: this.#self,
      leader: this.#leader,
      calls: false,
      leaves: false,
      gone: null,
      heard: this.#heard,
      held: [...this.#book.slotsOf(this.#self)],
      // Whoever is to lead may not be listening yet.
      admitted: this.#mode === 'joining' ? [] : this.#tally.take(this.#now()),
      ...about,
    })
    for (const part of parts) this.#mailbox.announce(JSON.stringify(part))
  }

  #received(payload: Uint8Array): void {
    const message = readMessage(payload)
    if (message === null) return this.#unreadable()
    if (message.from === this.#self || this.#mode === 'alone') return
    switch (message.type) {
      case 'report':
        return this.#heardReport(message)
      case 'asks':
        // Whoever does not lead need not answer: the asker hears who does, and asks again.
        if (this.#leader !== this.#self) return
        this.#members.heard(message.from, this.#self, this.#now())
        return this.#office.heardAsks(message)
      case 'answers':
        return this.#heardAnswers(message)
      case 'flush':
        this.#asker.flush()
        return this.#send(message.from, { type: 'flushed', from: this.#self, token: message.token })
      case 'flushed':
        return this.#office.heardFlushed(message.from, message.token)
    }
  }

  /** A process of another version: it is said once. */
  #unreadable(): void {
    if (!this.#hasWarned) this.#log.warn({}, 'letters about limits come that cannot be read')
    this.#hasWarned = true
  }

  #heardAnswers({ from, number, answers }: LimitAnswers): void {
    if (this.#mode !== 'following' || from !== this.#leader) return
    this.#heard = number
    for (const [serial, refusedBy, remainingRequests, resetMs, remainingConcurrency] of answers) {
      const request = this.#asker.answered(serial)
      if (request === null) continue
      const decision = { refusedBy, remainingRequests, resetMs, remainingConcurrency }
      if (refusedBy === null) this.#book.admit(request.subject, request.limits, this.#self, this.#now())
      this.#note(request, decision, from)
      request.settle(decision)
    }
  }

  #heardReport(report: LimitReport): void {
    const { from, leader, gone } = report
    const now = this.#now()
    // What this process admitted it knows.
    for (const { by, age_ms, counts } of report.admitted)
      if (by !== this.#self)
        for (const [subject, count] of counts) this.#book.noteRequests(subject, count, now - age_ms)
    const held = this.#parts.heldIn(report)
    if (held === null) return
    if (report.leaves) return this.#lost(from)
    this.#members.heard(from, leader, now)
    if (leader === this.#self) this.#office.heardSlots(from, held, report.heard)
    else this.#book.setSlots(from, held)
    const led = this.#leader
    if (gone !== null && gone !== this.#self) this.#lost(gone)
    this.#settleLeader()
    // Whoever follows another leader has just reported.
    if ((report.calls || gone === this.#self) && this.#leader === led) this.#report()
    if (leader === this.#self && this.#awaited.delete(from)) this.#leadIfGathered()
  }

  #undelivered(to: string): void {
    if (!this.#members.has(to)) return
    this.#report({ gone: to })
    this.#lost(to)
  }

  #lost(id: string): void {
    this.#parts.forget(id)
    this.#book.dropHolder(id)
    this.#office.lost(id)
    if (!this.#members.delete(id)) return
    this.#log.debug({ process: id }, 'a gateway process is gone: its slots are free')
    this.#settleLeader()
    if (this.#awaited.delete(id)) this.#leadIfGathered()
  }

  #up(): void {
    this.#setMode('joining', null)
    this.#report({ calls: true })
    this.#phaseTimer = setTimeout(() => this.#endJoin(), JOIN_MS).unref()
  }

  #endJoin(): void {
    this.#setMode('following', null)
    this.#settleLeader()
  }

  #down(): void {
    for (const id of this.#members.ids) this.#book.dropHolder(id)
    this.#members.clear()
    this.#parts.forget()
    this.#setMode('alone', null)
  }

  /** Who leads, as it must be now for everybody who has heard the same. */
  #settleLeader(): void {
    if (this.#mode === 'alone') return
    const leaders = this.#members.leaders
    if (this.#leader === this.#self) leaders.push(this.#self)
    if (leaders.length === 0) {
      if (this.#mode === 'joining') return
      const first = firstOf([...this.#members.ids, this.#self])
      if (first === this.#self) return this.#gather()
      this.#follow(null)
      this.#probe(first)
    } else if (firstOf(leaders) !== this.#self) this.#follow(firstOf(leaders))
    // The other one hears it and gives way.
    else if (leaders.length > 1) this.#report({ calls: true })
  }

  #follow(leader: string | null): void {
    if (this.#mode === 'following' && this.#leader === leader) return
    this.#setMode('following', leader)
    this.#report()
    if (leader !== null) this.#joined.resolve()
  }

  #gather(): void {
    this.#setMode('gathering', this.#self)
    for (const id of this.#members.ids) this.#awaited.add(id)
    this.#phaseTimer = setTimeout(() => this.#lead(), GATHER_BOUND_MS).unref()
    this.#report({ calls: true })
    for (const id of this.#awaited) this.#probe(id)
    this.#leadIfGathered()
  }

  /** A process that is gone is known to be so when a letter to it comes back. */
  #probe(id: string): void {
    this.#send(id, { type: 'flush', from: this.#self, token: 0 })
  }

  #leadIfGathered(): void {
    if (this.#mode === 'gathering' && this.#awaited.size === 0) this.#lead()
  }

  #lead(): void {
    this.#setMode('leading', this.#self)
    this.#office.open()
    this.#joined.resolve()
  }

  /** Whoever waits for a verdict goes on waiting where it is given now. */
  #setMode(mode: Mode, leader: string | null): void {
    if (this.#phaseTimer !== null) clearTimeout(this.#phaseTimer)
    this.#phaseTimer = null
    this.#awaited.clear()
    this.#log.debug({ mode, leader }, 'who holds the limits has changed')
    const wasLeading = this.#leader === this.#self
    const isFollowing = mode === 'following'
    this.#mode = mode
    if (this.#leader !== leader) this.#heard = 0
    this.#leader = leader
    const waiting = wasLeading && leader !== this.#self ? this.#office.close() : []
    if (isFollowing) this.#asker.follow(leader)
    else {
      this.#asker.follow(null)
      waiting.push(...this.#asker.takeAll())
    }
    for (const request of waiting) this.#ask(request)
  }

  #tick(): void {
    const now = this.#now()
    const wasStopped = now - this.#tickedAt > 2 * REPORT_INTERVAL_MS
    this.#tickedAt = now
    if (wasStopped) this.#members.excuse(now)
    for (const id of this.#members.silent(now)) this.#lost(id)
    this.#book.sweep(now)
    this.#tally.prune(now)
    if (this.#mode !== 'alone') this.#report()
  }
}
