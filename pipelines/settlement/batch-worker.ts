/**
 * Works on the rows that the messages of a queue name. Rows of many messages are read together, and each message is held
 * until the work on its row has ended: then it is acknowledged, or released to be delivered again.
 */
import type { Delivery } from '../../src/nats/nats.ts'
import { OutageLog, type PipelineLog } from './retrying.ts'

/** Messages that come within this time are read together. */
export const LINGER_MS = 5
export const BATCH_MAX_ROWS = 500
/** Pause after an unexpected error, or while PostgreSQL is down. */
export const FAULT_DELAY_MS = 2_000
const STOP_POLL_MS = 50

interface BatchWorkerDeps {
  readonly log: PipelineLog
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<unknown>
}

interface BatchQueue<Message, Row> {
  /** What a message names, such as "task", and what this work is, such as "Working on tasks": for the log. */
  readonly subject: string
  readonly title: string
  /** Returns null for what is no message of this queue. */
  readonly decode: (payload: Uint8Array) => Message | null
  readonly read: (ids: readonly string[]) => Promise<readonly Row[]>
  /** Works on a row; null for one that is no longer there. Its end calls `finish` or `release`. */
  readonly work: (held: Held<Message>, row: Row | null) => void
}

/** A message that is worked on; without a delivery where the work was found while NATS was down. */
export interface Held<Message> {
  readonly message: Message
  readonly delivery: Delivery | null
}

export class BatchWorker<Message extends { readonly id: string }, Row extends { readonly id: string }> {
  /** Whether the work fails now. */
  readonly outage: OutageLog
  readonly #deps: BatchWorkerDeps
  readonly #queue: BatchQueue<Message, Row>
  readonly #held = new Set<Delivery>()
  #received: Held<Message>[] = []
  #isReadComing = false
  #isStopped = false

  constructor(deps: BatchWorkerDeps, queue: BatchQueue<Message, Row>) {
    this.#deps = deps
    this.#queue = queue
    this.outage = new OutageLog(deps.log, queue.title)
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Messages here, worked on or about to be. */
  get held(): number {
    return this.#held.size
  }

  receive(delivery: Delivery): void {
    const { decode, subject } = this.#queue
    const message = decode(delivery.data)
    if (message !== null) return this.take(message, delivery)
    this.#deps.log.error({ message_id: delivery.messageId }, `Dropped malformed message about a ${subject}`)
    delivery.acknowledge()
  }

  /** Takes work that no message names, or that of a message. */
  take(message: Message, delivery: Delivery | null = null): void {
    if (this.#isStopped) return delivery?.release(0)
    if (delivery !== null) this.#held.add(delivery)
    this.#received.push({ message, delivery })
    if (this.#isReadComing) return
    this.#isReadComing = true
    void this.#deps.pause(LINGER_MS).then(() => this.#read())
  }

  /** Reports to NATS that the messages here are still worked on. */
  keep(): void {
    for (const delivery of this.#held) delivery.keep()
  }

  /** Stops taking work. Resolves when all work has ended or the bound has passed, and releases what is left. */
  async stop(boundMs: number, isBusy: () => boolean): Promise<void> {
    this.#isStopped = true
    const until = this.#deps.now() + boundMs
    for (const held of this.#received.splice(0)) this.release(held, 0)
    while (isBusy() && this.#deps.now() < until) await this.#deps.pause(STOP_POLL_MS)
    for (const delivery of this.#held) delivery.release(0)
    this.#held.clear()
  }

  /** Acknowledges the message: its work has ended. */
  finish({ delivery }: Held<Message>): void {
    if (delivery === null) return
    this.#held.delete(delivery)
    delivery.acknowledge()
  }

  /** Has the message delivered again, after the delay. */
  release({ delivery }: Held<Message>, delayMs: number): void {
    if (delivery !== null && this.#held.delete(delivery)) delivery.release(delayMs)
  }

  async #read(): Promise<void> {
    this.#isReadComing = false
    while (this.#received.length > 0) {
      const batch = this.#received.splice(0, BATCH_MAX_ROWS)
      try {
        const rows = await this.#queue.read([...new Set(batch.map(({ message }) => message.id))])
        const byId = new Map(rows.map((row) => [row.id, row]))
        for (const held of batch)
          if (this.#isStopped) this.release(held, 0)
          else this.#queue.work(held, byId.get(held.message.id) ?? null)
      } catch (error) {
        this.outage.noteFailure(error)
        for (const held of batch) this.release(held, FAULT_DELAY_MS)
      }
    }
  }
}
