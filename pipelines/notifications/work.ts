/**
 * Works on the deliveries whose messages come to this process. Each lane, an endpoint or the mail server, has few
 * attempts under way at a time, and so has each account and each host, so that one that is slow holds nothing but its own.
 * Lanes take turns. A message is acknowledged once its
 * attempt is in the row. See docs/notifications.md, "Deliveries".
 */

import type { AttemptResult, DueDelivery } from '../../schemas/notifications/delivery.ts'
import type { Delivery } from '../../src/nats/nats.ts'
import type { Deliveries } from '../../src/postgres/notifications/repository.ts'
import { OutageLog, type PipelineLog } from '../settlement/retrying.ts'
import { type AttemptDeps, attempt } from './attempt.ts'
import { decodeDeliveryMessage } from './messages.ts'

/** Attempts at a time of one lane, of the lanes of one account, of one host, and of all: each is a connection. */
export const ATTEMPTS_AT_ONCE = { lane: 8, account: 32, host: 32, all: 512 } as const
const LINGER_MS = 5
const READ_MAX_DELIVERIES = 500
/** While PostgreSQL is away. */
const FAULT_DELAY_MS = 2_000
const STOP_POLL_MS = 50

export interface DeliveryWorkDeps extends AttemptDeps {
  readonly database: { readonly deliveries: Pick<Deliveries, 'read' | 'endAttempts' | 'touch'> }
  /** Called after attempts have been recorded: their lanes have room. */
  readonly onRecorded: () => void
  readonly log: PipelineLog
  readonly pause: (ms: number) => Promise<unknown>
}

/** A delivery that is to be attempted; without a message while NATS is away. */
interface Received {
  readonly id: string
  readonly message: Delivery | null
}

interface Waiting extends Received {
  readonly delivery: DueDelivery
  readonly shares: readonly Share[]
}

/** A host or an account: the attempts that share it are counted together. */
interface Share {
  readonly key: string
  readonly most: number
}

/** Returns the account and the host of a webhook. Mails have the mail server's lane alone. */
function sharesOf({ event, endpoint }: DueDelivery): readonly Share[] {
  if (event === null || endpoint === null) return []
  const account = { key: `account ${event.accountId}`, most: ATTEMPTS_AT_ONCE.account }
  const host = URL.canParse(endpoint.url) ? new URL(endpoint.url).host : ''
  return [account, { key: `host ${host}`, most: ATTEMPTS_AT_ONCE.host }]
}

export class DeliveryWork {
  readonly #deps: DeliveryWorkDeps
  readonly #trouble: OutageLog
  readonly #held = new Set<Delivery>()
  /** Ids of what is here, so that a second message about one is done with at once. */
  readonly #ids = new Set<string>()
  /** In the order of their turns. */
  readonly #lanes = new Map<string, { waiting: Waiting[]; running: number }>()
  /** Attempts under way, of each account and each host that has some. */
  readonly #sharing = new Map<string, number>()
  #received: Received[] = []
  #results: { readonly one: Received; readonly result: AttemptResult }[] = []
  #isReadComing = false
  #isWriteComing = false
  #running = 0
  #isStopped = false

  constructor(deps: DeliveryWorkDeps) {
    this.#deps = deps
    this.#trouble = new OutageLog(deps.log, 'Delivering notifications')
  }

  receive(message: Delivery): void {
    const id = decodeDeliveryMessage(message.data)
    if (id !== null) return this.#take({ id, message })
    this.#deps.log.error({ message_id: message.messageId }, 'Dropped malformed message about a delivery')
    message.acknowledge()
  }

  /** Takes a delivery that no message names. */
  take(id: string): void {
    this.#take({ id, message: null })
  }

  /** Says to NATS that what is here is still worked on. */
  keep(): void {
    for (const message of this.#held) message.keep()
  }

  /** Says to PostgreSQL that what is here is named still: else it is named again. */
  async touch(): Promise<void> {
    if (this.#ids.size > 0) await this.#deps.database.deliveries.touch([...this.#ids])
  }

  /** Begins no more attempts; ends when those under way are recorded, or the bound is over. */
  async stop(boundMs: number): Promise<void> {
    this.#isStopped = true
    const until = this.#deps.now() + boundMs
    for (const lane of this.#lanes.values()) for (const one of lane.waiting.splice(0)) this.#release(one, 0)
    for (const one of this.#received.splice(0)) this.#release(one, 0)
    const isBusy = () => this.#running > 0 || this.#results.length > 0 || this.#isWriteComing
    while (isBusy() && this.#deps.now() < until) await this.#deps.pause(STOP_POLL_MS)
    for (const message of [...this.#held]) message.release()
  }

  #take(one: Received): void {
    const { id, message } = one
    if (this.#isStopped) return message?.release()
    if (this.#ids.has(id)) return message?.acknowledge()
    this.#ids.add(id)
    if (message !== null) this.#held.add(message)
    this.#received.push(one)
    if (this.#isReadComing) return
    this.#isReadComing = true
    void this.#deps.pause(LINGER_MS).then(() => this.#read())
  }

  async #read(): Promise<void> {
    this.#isReadComing = false
    while (this.#received.length > 0) {
      const received = this.#received.splice(0, READ_MAX_DELIVERIES)
      try {
        const due = await this.#deps.database.deliveries.read(received.map(({ id }) => id))
        this.#logUnreadable(due)
        const byId = new Map(due.map((delivery) => [delivery.id, delivery]))
        for (const one of received) {
          const delivery = byId.get(one.id)
          if (this.#isStopped) this.#release(one, 0)
          else if (delivery === undefined || delivery.state !== 'waiting') this.#finish(one)
          else this.#queue({ ...one, delivery, shares: sharesOf(delivery) })
        }
      } catch (error) {
        this.#trouble.failed(error)
        for (const one of received) this.#release(one, FAULT_DELAY_MS)
      }
    }
  }

  #logUnreadable(due: readonly DueDelivery[]): void {
    const deliveries = due.flatMap(({ id, isUnreadable }) => (isUnreadable ? [id] : []))
    if (deliveries.length === 0) return
    this.#deps.log.error(
      { deliveries },
      'Stored secrets or mails of deliveries do not open with this TOLLGATE_MASTER_KEY; these attempts fail',
    )
  }

  #queue(one: Waiting): void {
    const { lane: name } = one.delivery
    const lane = this.#lanes.get(name) ?? { waiting: [], running: 0 }
    this.#lanes.set(name, lane)
    lane.waiting.push(one)
    while (this.#begin(name));
  }

  /** Begins the next attempt of a lane that may have one more. Returns whether it did. */
  #begin(name: string): boolean {
    const lane = this.#lanes.get(name)!
    const next = lane.waiting[0]
    if (this.#isStopped || next === undefined || this.#running >= ATTEMPTS_AT_ONCE.all) return false
    const { shares } = next
    if (lane.running >= ATTEMPTS_AT_ONCE.lane || shares.some((share) => this.#isFull(share))) return false
    lane.waiting.shift()
    lane.running++
    this.#running++
    this.#share(shares, 1)
    void attempt(this.#deps, next.delivery).then((result) => {
      lane.running--
      this.#running--
      this.#share(shares, -1)
      this.#write({ one: next, result })
      this.#beginAll()
    })
    return true
  }

  /** Begins what may begin: one attempt of each lane in turn, until none may have one more. */
  #beginAll(): void {
    let hasBegun = true
    while (hasBegun) {
      hasBegun = false
      for (const [name, lane] of [...this.#lanes]) {
        if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(name)
        else if (this.#begin(name)) {
          hasBegun = true
          // Its next turn is after those of all others.
          this.#lanes.delete(name)
          this.#lanes.set(name, lane)
        }
      }
    }
  }

  #isFull({ key, most }: Share): boolean {
    return (this.#sharing.get(key) ?? 0) >= most
  }

  #share(shares: readonly Share[], change: 1 | -1): void {
    for (const { key } of shares) {
      const running = (this.#sharing.get(key) ?? 0) + change
      if (running > 0) this.#sharing.set(key, running)
      else this.#sharing.delete(key)
    }
  }

  #write(ended: { readonly one: Received; readonly result: AttemptResult }): void {
    this.#results.push(ended)
    if (this.#isWriteComing) return
    this.#isWriteComing = true
    void this.#deps.pause(LINGER_MS).then(() => this.#record())
  }

  async #record(): Promise<void> {
    while (this.#results.length > 0) {
      const ended = this.#results.splice(0, READ_MAX_DELIVERIES)
      try {
        await this.#deps.database.deliveries.endAttempts(ended.map(({ result }) => result))
        this.#trouble.succeeded()
        for (const { one } of ended) this.#finish(one)
        // A process that stops would not work on what another round names, and other processes would wait for it.
        if (!this.#isStopped) this.#deps.onRecorded()
      } catch (error) {
        // The attempts were made, and will be made again: at least once.
        this.#trouble.failed(error)
        for (const { one } of ended) this.#release(one, FAULT_DELAY_MS)
      }
    }
    this.#isWriteComing = false
  }

  #finish({ id, message }: Received): void {
    this.#ids.delete(id)
    if (message === null) return
    this.#held.delete(message)
    message.acknowledge()
  }

  #release({ id, message }: Received, delayMs: number): void {
    this.#ids.delete(id)
    if (message !== null && this.#held.delete(message)) message.release(delayMs)
  }
}
