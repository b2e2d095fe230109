/**
 * Limits over all gateway processes. One process leads: it decides its own requests at once, and the others ask it,
 * many requests in a message. Every process reports each second what it admitted and which slots it holds; so the next
 * leader knows the window, and a process that ends leaves no slot behind. While NATS is down each process decides by
 * its own state. The process that leads already stays leader; without one the oldest process leads. Where two lead,
 * the older one stays. See docs/api-rules.md, "Rate limits".
 */
import type { LimitAnswers, LimitMessage, LimitReport } from '../../schemas/accounts/limits.ts'
import { type Decision, LimiterState, type SubjectLimits } from '../core/limits/limiter-state.ts'
import type { Mailbox, MailboxHandlers } from '../nats/mailbox.ts'
import type { Log } from '../telemetry/log.ts'
import { Arbiter } from './arbiter.ts'
import { ArbiterClient } from './client.ts'
import { decodeMessage, ReportAssembler, splitReport } from './codec.ts'
import { AdmissionCounter } from './counter.ts'
import { admits, LimitedRequest, type Permit } from './limited-request.ts'
import { findFirst, Members } from './members.ts'

const REPORT_INTERVAL_MS = 1_000
/** How long a process that has just started listens for others before it leads. */
const JOIN_MS = 300
/** How long a new leader waits for the others' reports. */
const GATHER_BOUND_MS = 500
/** How long a start waits for NATS. */
const START_BOUND_MS = 2_500

interface LimiterOptions {
  /** One token of a subject. Rises from process to process. */
  readonly self: string
  readonly openMailbox: (handlers: MailboxHandlers) => Mailbox
  readonly log: Pick<Log, 'debug' | 'warn'>
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number
}

/**
 * - alone: NATS is down, and this process decides for itself.
 * - joining: NATS is up, and there may be other processes.
 * - following: requests go to the leader, once there is one.
 * - gathering: this process will lead when the others have reported.
 */
type Mode = 'alone' | 'joining' | 'following' | 'gathering' | 'leading'

export class Limiter {
  readonly #self: string
  readonly #now: () => number
  readonly #log: LimiterOptions['log']
  readonly #mailbox: Mailbox
  readonly #state = new LimiterState()
  readonly #counter = new AdmissionCounter()
  readonly #members = new Members()
  readonly #client: ArbiterClient
  readonly #arbiter: Arbiter
  #mode: Mode = 'alone'
  #leader: string | null = null
  /** Number of the leader's last message with answers. */
  #lastNumber = 0
  /** Processes that have not reported yet to the leader that this process is about to be. */
  readonly #awaited = new Set<string>()
  readonly #reports = new ReportAssembler()
  #phaseTimer: NodeJS.Timeout | undefined
  readonly #tickTimer: NodeJS.Timeout
  #lastTickAt: number
  #hasWarned = false
  readonly #joined = Promise.withResolvers<void>()

  constructor({ self, openMailbox, log, now }: LimiterOptions) {
    this.#self = self
    this.#now = now
    this.#log = log
    this.#client = new ArbiterClient({
      now,
      send: (leader, asks) => this.#send(leader, { type: 'asks', from: self, ...asks }),
      onSlow: () => (this.#leader === null ? this.#settleLeader() : this.#probe(this.#leader)),
      onTimeout: (request) => this.#decideHere(request),
    })
    this.#arbiter = new Arbiter({
      self,
      now,
      state: this.#state,
      send: (to, message) => this.#send(to, message),
      onOwnDecisions: (request, decisions) => this.#settleHere(request, decisions),
    })
    this.#mailbox = openMailbox({
      onMessage: (payload) => this.#onMessage(payload),
      onUndelivered: (to) => this.#onUndelivered(to),
      onConnected: () => this.#onConnected(),
      onDisconnected: () => this.#onDisconnected(),
    })
    this.#lastTickAt = now()
    this.#tickTimer = setInterval(() => this.#tick(), REPORT_INTERVAL_MS).unref()
    setTimeout(this.#joined.resolve, START_BOUND_MS).unref()
  }

  /**
   * Asks for a decision by each subject: all admit the request, or none counts it. `onDecisions` is called once, before
   * this returns where this process decides, unless the permit was closed by then. Must not throw. Close the permit
   * when the request is over.
   */
  take(subjects: readonly SubjectLimits[], onDecisions: (decisions: readonly Decision[]) => void): Permit {
    const request = new LimitedRequest(subjects, {
      onDecisions,
      onReleased: (over) => this.#reportReleased(over),
    })
    this.#ask(request)
    return request
  }

  /** Returns the requests in flight known to this process; exact where it leads. */
  countInFlight(subject: string): number {
    return this.#state.countInFlight(subject)
  }

  /** Number of gateway processes that this one knows, itself included. */
  get processCount(): number {
    return this.#members.ids.length + 1
  }

  /** Resolves when it is known who leads, or when that takes too long. */
  waitUntilJoined(): Promise<void> {
    return this.#joined.promise
  }

  /** Announces to the others that this process ends. */
  async close(): Promise<void> {
    clearInterval(this.#tickTimer)
    if (this.#mode !== 'alone') this.#report({ leaves: true })
    this.#onDisconnected()
    await this.#mailbox.close()
  }

  #ask(request: LimitedRequest): void {
    if (this.#mode === 'following') this.#client.ask(request)
    else if (this.#mode === 'gathering' || this.#mode === 'leading') this.#arbiter.ask(request)
    else this.#decideHere(request)
  }

  /** Decides by the state of this process. */
  #decideHere(request: LimitedRequest): void {
    if (request.isClosed) return
    this.#settleHere(request, this.#state.decide(request.subjects, this.#self, this.#now()))
  }

  #settleHere(request: LimitedRequest, decisions: readonly Decision[]): void {
    if (admits(decisions)) this.#note(request, this.#self)
    request.settle(decisions)
  }

  /** Counts an admitted request, for the reports to the others. */
  #note({ subjects }: LimitedRequest, by: string): void {
    for (const { subject, limits } of subjects)
      if (limits.requestsPerMinute !== null) this.#counter.add(subject, by, this.#now())
  }

  #reportReleased({ subjects }: LimitedRequest): void {
    for (const { subject, limits } of subjects) {
      if (limits.concurrency === null) continue
      this.#state.release(subject, this.#self)
      if (this.#mode === 'following') this.#client.release(subject)
    }
  }

  #send(to: string, message: LimitMessage): void {
    this.#mailbox.send(to, JSON.stringify(message))
  }

  #report(about: Partial<Pick<LimitReport, 'calls' | 'leaves' | 'gone'>> = {}): void {
    // Released slots are sent before the report that includes them.
    this.#client.flush()
    const parts = splitReport({
      type: 'report',
      from: this.#self,
      leader: this.#leader,
      calls: false,
      leaves: false,
      gone: null,
      heard: this.#lastNumber,
      held: [...this.#state.listSlots(this.#self)],
      // The next leader may not be listening yet.
      admitted: this.#mode === 'joining' ? [] : this.#counter.take(this.#now()),
      ...about,
    })
    for (const part of parts) this.#mailbox.announce(JSON.stringify(part))
  }

  #onMessage(payload: Uint8Array): void {
    const message = decodeMessage(payload)
    if (message === null) return this.#onMalformed()
    if (message.from === this.#self || this.#mode === 'alone') return
    switch (message.type) {
      case 'report':
        return this.#onReport(message)
      case 'asks':
        // Only the leader answers: reports name the leader, and the sender asks it again.
        if (this.#leader !== this.#self) return
        this.#members.update(message.from, this.#self, this.#now())
        return this.#arbiter.onAsks(message)
      case 'answers':
        return this.#onAnswers(message)
      case 'flush':
        this.#client.flush()
        return this.#send(message.from, { type: 'flushed', from: this.#self, token: message.token })
      case 'flushed':
        return this.#arbiter.onFlushed(message.from, message.token)
    }
  }

  /** Warns once: the sender is a process of another version. */
  #onMalformed(): void {
    if (!this.#hasWarned) this.#log.warn({}, 'Dropped malformed rate-limit message')
    this.#hasWarned = true
  }

  #onAnswers({ from, number, answers }: LimitAnswers): void {
    if (from !== this.#leader) return
    this.#lastNumber = number
    for (const [serial, refusedBy, remainingRequests, resetMs, remainingConcurrency] of answers) {
      const decision = { refusedBy, remainingRequests, resetMs, remainingConcurrency }
      const answered = this.#client.takeAnswered(serial, decision)
      if (answered === null) continue
      const { request, decisions } = answered
      if (admits(decisions)) {
        for (const { subject, limits } of request.subjects)
          this.#state.admit(subject, limits, this.#self, this.#now())
        this.#note(request, from)
      }
      request.settle(decisions)
    }
  }

  #onReport(report: LimitReport): void {
    const { from, leader, gone } = report
    const now = this.#now()
    // This process knows its own admissions.
    for (const { by, age_ms, counts } of report.admitted)
      if (by !== this.#self)
        for (const [subject, count] of counts) this.#state.noteRequests(subject, count, now - age_ms)
    const held = this.#reports.add(report)
    if (held === null) return
    if (report.leaves) return this.#onProcessLost(from)
    this.#members.update(from, leader, now)
    if (leader === this.#self) this.#arbiter.onSlots(from, held, report.heard)
    else this.#state.setSlots(from, held)
    if (gone !== null && gone !== this.#self) this.#onProcessLost(gone)
    this.#settleLeader()
    if (report.calls || gone === this.#self) this.#report()
    if (leader === this.#self && this.#awaited.delete(from)) this.#leadIfGathered()
  }

  #onUndelivered(to: string): void {
    if (!this.#members.has(to)) return
    this.#report({ gone: to })
    this.#onProcessLost(to)
  }

  #onProcessLost(id: string): void {
    this.#reports.forget(id)
    this.#state.dropHolder(id)
    this.#arbiter.onProcessLost(id)
    if (!this.#members.delete(id)) return
    this.#log.debug({ process: id }, 'Lost a gateway process; released its slots')
    this.#settleLeader()
    this.#awaited.delete(id)
    this.#leadIfGathered()
  }

  #onConnected(): void {
    this.#setMode('joining', null)
    this.#report({ calls: true })
    this.#phaseTimer = setTimeout(() => this.#endJoin(), JOIN_MS).unref()
  }

  #endJoin(): void {
    this.#setMode('following', null)
    this.#settleLeader()
  }

  #onDisconnected(): void {
    for (const id of this.#members.ids) this.#state.dropHolder(id)
    this.#members.clear()
    this.#reports.forget()
    this.#setMode('alone', null)
  }

  /** Chooses the leader: processes with the same reports choose the same one. */
  #settleLeader(): void {
    const leaders = this.#members.leaders
    if (this.#leader === this.#self) leaders.push(this.#self)
    if (leaders.length === 0) {
      if (this.#mode === 'joining') return
      const first = findFirst([...this.#members.ids, this.#self])
      if (first === this.#self) return this.#gather()
      this.#follow(null)
      this.#probe(first)
    } else if (findFirst(leaders) !== this.#self) this.#follow(findFirst(leaders))
    // The other leader receives the report and follows this one.
    else if (leaders.length > 1) this.#report()
  }

  #follow(leader: string | null): void {
    if (this.#leader === leader) return
    this.#setMode('following', leader)
    this.#report()
    this.#joined.resolve()
  }

  #gather(): void {
    this.#setMode('gathering', this.#self)
    for (const id of this.#members.ids) this.#awaited.add(id)
    this.#phaseTimer = setTimeout(() => this.#lead(), GATHER_BOUND_MS).unref()
    this.#report()
    for (const id of this.#awaited) this.#probe(id)
    this.#leadIfGathered()
  }

  /** Sends a probe: the end of a process is noticed when a message to it comes back. */
  #probe(id: string): void {
    this.#send(id, { type: 'flush', from: this.#self, token: 0 })
  }

  #leadIfGathered(): void {
    if (this.#mode === 'gathering' && this.#awaited.size === 0) this.#lead()
  }

  #lead(): void {
    this.#setMode('leading', this.#self)
    this.#arbiter.open()
    this.#joined.resolve()
  }

  /** Changes the mode, and passes waiting requests to the place that now decides. */
  #setMode(mode: Mode, leader: string | null): void {
    clearTimeout(this.#phaseTimer)
    this.#awaited.clear()
    this.#log.debug({ mode, leader }, 'Changed the rate-limit mode or leader')
    const isFollowing = mode === 'following'
    this.#mode = mode
    this.#lastNumber = 0
    this.#leader = leader
    const waiting = leader === this.#self ? [] : this.#arbiter.close()
    if (isFollowing) this.#client.follow(leader)
    else {
      this.#client.follow(null)
      waiting.push(...this.#client.takeAll())
    }
    for (const request of waiting) this.#ask(request)
  }

  #tick(): void {
    const now = this.#now()
    const wasStopped = now - this.#lastTickAt > 2 * REPORT_INTERVAL_MS
    this.#lastTickAt = now
    if (wasStopped) this.#members.touchAll(now)
    for (const id of this.#members.listSilent(now)) this.#onProcessLost(id)
    this.#state.sweep(now)
    this.#counter.prune(now)
    if (this.#mode !== 'alone') this.#report()
  }
}
