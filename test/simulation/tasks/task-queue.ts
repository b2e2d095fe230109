/** JetStream and core NATS for tasks, as the worst server that keeps their word. */
import type { Delivery, Nats } from '../../../src/nats/nats.ts'
import type { Random } from '../random.ts'
import type { Process, VirtualTime } from '../virtual-time.ts'
import type { TaskFaults } from './task-faults.ts'

const ACKNOWLEDGE_WAIT_MS = 30_000
const PUBLISH_BOUND_MS = 5_000

interface Stored {
  readonly data: Uint8Array
  hiddenUntil: number
}

interface Listener {
  readonly process: Process
  readonly heard: (payload: Uint8Array) => void
}

export class TaskQueue {
  readonly #time: VirtualTime
  readonly #random: Random
  readonly #faults: TaskFaults
  #stored = new Set<Stored>()
  #listeners: Listener[] = []
  #consumers: { readonly process: Process; readonly deliver: (delivery: Delivery) => void }[] = []

  constructor(time: VirtualTime, random: Random, faults: TaskFaults) {
    this.#time = time
    this.#random = random
    this.#faults = faults
  }

  /** The server's disk is gone. */
  loseStore(): void {
    this.#stored = new Set()
  }

  comeBack(): void {
    for (const stored of this.#stored) this.#deliverIn(stored, this.#random.int(0, 50))
  }

  consume(process: Process, deliver: (delivery: Delivery) => void): void {
    this.#consumers.push({ process, deliver })
    for (const stored of this.#stored) this.#deliverIn(stored, this.#random.int(0, 50))
  }

  natsOf(process: Process): Pick<Nats, 'publish' | 'announce' | 'listen' | 'isClosed'> {
    return {
      isClosed: false,
      publish: (_subject, _id, payload, done) => {
        if (this.#faults.dies(process)) return
        const refuse = (delayMs: number) =>
          void process.settleAfter(delayMs, () => done(new Error('not stored')))
        if (this.#faults.isNatsDown) return refuse(5)
        // Lost, or stored and the answer lost: stored twice then.
        if (!this.#faults.happens(0.05)) this.#store(payload)
        if (this.#faults.happens(0.1)) return refuse(PUBLISH_BOUND_MS)
        process.settleAfter(this.#random.int(0, 20), () => done(null))
      },
      announce: (_subject, payload) => {
        if (this.#faults.dies(process) || this.#faults.isNatsDown) return
        for (const { process: other, heard } of this.#listeners)
          if (!this.#faults.happens(0.2))
            other.after(this.#random.int(0, 200), () => {
              heard(Buffer.from(payload))
              this.#time.promiseSettled()
            })
      },
      listen: (_subject, heard) => {
        this.#listeners.push({ process, heard })
        return () => undefined
      },
    }
  }

  #store(data: Uint8Array): void {
    const stored = { data: Buffer.from(data), hiddenUntil: 0 }
    this.#stored.add(stored)
    this.#deliverIn(stored, this.#random.int(0, this.#faults.areOver ? 20 : 500))
  }

  #deliverIn(stored: Stored, delayMs: number): void {
    this.#time.after(delayMs, () => this.#deliver(stored))
  }

  #hide(stored: Stored): void {
    stored.hiddenUntil = this.#time.now + ACKNOWLEDGE_WAIT_MS
    this.#deliverIn(stored, ACKNOWLEDGE_WAIT_MS)
  }

  #deliver(stored: Stored): void {
    if (!this.#stored.has(stored) || this.#faults.isNatsDown || stored.hiddenUntil > this.#time.now) return
    const consumers = this.#consumers.filter(({ process }) => process.isAlive)
    if (consumers.length === 0) return
    const { process, deliver } = this.#random.pick(consumers)
    this.#hide(stored)
    const isHeard = () =>
      !this.#faults.dies(process) && !this.#faults.isNatsDown && !this.#faults.happens(0.05)
    process.settleAfter(this.#random.int(0, 10), () =>
      deliver({
        messageId: null,
        data: stored.data,
        acknowledge: () => {
          if (isHeard()) this.#stored.delete(stored)
        },
        keep: () => {
          if (isHeard()) this.#hide(stored)
        },
        release: (delayMs = 0) => {
          if (!isHeard()) return
          stored.hiddenUntil = this.#time.now + delayMs
          this.#deliverIn(stored, delayMs)
        },
      }),
    )
    // Given out a second time although the first is still at work.
    if (this.#faults.happens(0.1)) {
      stored.hiddenUntil = 0
      this.#deliverIn(stored, this.#random.int(0, 2_000))
    }
  }
}
