/**
 * Works on the deliveries whose messages come to this process. A lane is an endpoint or the mail server. Each lane,
 * account and host has few attempts at a time, so that a slow one delays only its own. Lanes take turns. A message is
 * acknowledged once its attempt is in the row. See docs/notifications.md, "Deliveries".
 */

import type { AttemptResult, DueDelivery } from '../../schemas/notifications/delivery.ts'
import type { Delivery } from '../../src/nats/nats.ts'
import type { Deliveries } from '../../src/postgres/notifications/repository.ts'
import {
  BATCH_MAX_ROWS,
  BatchWorker,
  FAULT_DELAY_MS,
  type Held,
  LINGER_MS,
} from '../settlement/batch-worker.ts'
import type { PipelineLog } from '../settlement/retrying.ts'
import { type AttemptDeps, attempt } from './attempt.ts'
import { decodeDeliveryMessage } from './messages.ts'

/** The most attempts at a time per lane, per account, per host, and in all: each is a connection. */
export const ATTEMPTS_AT_ONCE = { lane: 8, account: 32, host: 32, all: 512 } as const

export interface DeliveryWorkDeps extends AttemptDeps {
  readonly database: { readonly deliveries: Deliveries }
  /** Called when recorded attempts have made room in their lanes. */
  readonly onRecorded: () => void
  readonly log: PipelineLog
  readonly pause: (ms: number) => Promise<unknown>
}

type Message = Held<{ readonly id: string }>

interface Waiting {
  readonly message: Message
  readonly delivery: DueDelivery
  readonly shares: readonly Share[]
}

/** A host or an account: the attempts that share it are counted together. */
interface Share {
  readonly key: string
  readonly most: number
}

/** Returns the account and the host of a webhook. Mails share only the mail server's lane. */
function listShares({ event, endpoint }: DueDelivery): readonly Share[] {
  if (event === null || endpoint === null) return []
  const account = { key: `account ${event.accountId}`, most: ATTEMPTS_AT_ONCE.account }
  const host = URL.canParse(endpoint.url) ? new URL(endpoint.url).host : ''
  return [account, { key: `host ${host}`, most: ATTEMPTS_AT_ONCE.host }]
}

export class DeliveryWork {
  readonly #deps: DeliveryWorkDeps
  readonly #queue: BatchWorker<{ readonly id: string }, DueDelivery>
  /** The ids of the deliveries here: a second message about one is acknowledged at once. */
  readonly #ids = new Set<string>()
  /** In the order of their turn. */
  readonly #lanes = new Map<string, { waiting: Waiting[]; running: number }>()
  /** The number of attempts in progress per account and host. */
  readonly #sharing = new Map<string, number>()
  #results: { readonly message: Message; readonly result: AttemptResult }[] = []
  #isWriteComing = false
  #running = 0

  constructor(deps: DeliveryWorkDeps) {
    this.#deps = deps
    this.#queue = new BatchWorker(deps, {
      subject: 'delivery',
      title: 'Delivering notifications',
      decode: decodeDeliveryMessage,
      read: (ids) => this.#readDue(ids),
      work: (message, delivery) => this.#attempt(message, delivery),
    })
  }

  receive(delivery: Delivery): void {
    this.#queue.receive(delivery)
  }

  /** Takes a delivery that no message names. */
  take(id: string): void {
    this.#queue.take({ id })
  }

  /** Reports to NATS that the messages here are still worked on. */
  keep(): void {
    this.#queue.keep()
  }

  /** Touches the deliveries here in PostgreSQL: otherwise they would be named again. */
  async touch(): Promise<void> {
    if (this.#ids.size > 0) await this.#deps.database.deliveries.touch([...this.#ids])
  }

  /** Stops starting attempts. Resolves when those in progress are recorded, or after the bound. */
  stop(boundMs: number): Promise<void> {
    for (const lane of this.#lanes.values())
      for (const { message } of lane.waiting.splice(0)) this.#release(message, 0)
    const isBusy = () => this.#running > 0 || this.#results.length > 0 || this.#isWriteComing
    return this.#queue.stop(boundMs, isBusy)
  }

  async #readDue(ids: readonly string[]): Promise<readonly DueDelivery[]> {
    const due = await this.#deps.database.deliveries.read(ids)
    this.#logUnreadable(due)
    return due
  }

  #attempt(message: Message, delivery: DueDelivery | null): void {
    const { id } = message.message
    if (this.#ids.has(id) || delivery === null || delivery.state !== 'waiting')
      return this.#queue.finish(message)
    this.#ids.add(id)
    this.#queueUp({ message, delivery, shares: listShares(delivery) })
  }

  #logUnreadable(due: readonly DueDelivery[]): void {
    const deliveries = due.flatMap(({ id, isUnreadable }) => (isUnreadable ? [id] : []))
    if (deliveries.length === 0) return
    this.#deps.log.error(
      { deliveries },
      'Stored secrets or mails of deliveries do not open with this TOLLGATE_MASTER_KEY; these attempts fail',
    )
  }

  #queueUp(one: Waiting): void {
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
    if (this.#queue.isStopped || next === undefined || this.#running >= ATTEMPTS_AT_ONCE.all) return false
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
      this.#write({ message: next.message, result })
      this.#beginAll()
    })
    return true
  }

  /** Begins one attempt per lane in turn, until no lane may have another. */
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

  #write(ended: { readonly message: Message; readonly result: AttemptResult }): void {
    this.#results.push(ended)
    if (this.#isWriteComing) return
    this.#isWriteComing = true
    void this.#deps.pause(LINGER_MS).then(() => this.#record())
  }

  async #record(): Promise<void> {
    while (this.#results.length > 0) {
      const ended = this.#results.splice(0, BATCH_MAX_ROWS)
      try {
        await this.#deps.database.deliveries.endAttempts(ended.map(({ result }) => result))
        this.#queue.outage.noteSuccess()
        for (const { message } of ended) this.#finish(message)
        // A process that stops would not work on what a new round names, and the others would wait for it.
        if (!this.#queue.isStopped) this.#deps.onRecorded()
      } catch (error) {
        // The attempts will be repeated: delivery is at least once.
        this.#queue.outage.noteFailure(error)
        for (const { message } of ended) this.#release(message, FAULT_DELAY_MS)
      }
    }
    this.#isWriteComing = false
  }

  #finish(message: Message): void {
    this.#ids.delete(message.message.id)
    this.#queue.finish(message)
  }

  #release(message: Message, delayMs: number): void {
    this.#ids.delete(message.message.id)
    this.#queue.release(message, delayMs)
  }
}
