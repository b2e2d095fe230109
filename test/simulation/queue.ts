/** JetStream and core NATS as the worst server that keeps their word: slow, lossy, out of order, twice. */
import type { Delivery, Nats } from '../../src/nats/nats.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Process, VirtualTime } from './virtual-time.ts'

const ACKNOWLEDGE_WAIT_MS = 6_000
const PUBLISH_BOUND_MS = 5_000
const DUPLICATE_WINDOW_MS = 120_000

interface Stored {
  readonly id: string
  readonly data: Uint8Array
  /** Given out, and silent, until then. */
  hiddenUntil: number
}

interface ConsumerOf {
  readonly process: Process
  readonly deliver: (delivery: Delivery) => void
}

interface ListenerOf {
  readonly process: Process
  readonly heard: (payload: Uint8Array) => void
  readonly missed: () => void
}

export type SimulatedNats = Pick<
  Nats,
  'publish' | 'announce' | 'listen' | 'consume' | 'sendDirectly' | 'receiveDirectly'
>

export class Queue {
  readonly #time: VirtualTime
  readonly #random: Random
  readonly #faults: Faults
  #stored = new Set<Stored>()
  /** Ids and when they were stored. */
  #known = new Map<string, number>()
  #consumers: ConsumerOf[] = []
  #receivers: ConsumerOf[] = []
  #listeners: ListenerOf[] = []

  constructor(time: VirtualTime, random: Random, faults: Faults) {
    this.#time = time
    this.#random = random
    this.#faults = faults
  }

  get depth(): number {
    return this.#stored.size
  }

  /** The server's disk is gone: an empty one comes back. */
  loseStore(): void {
    this.#stored = new Set()
    this.#known = new Map()
  }

  /** The server is back, and connections to it are. */
  comeBack(): void {
    this.#giveOut()
    for (const { process, missed } of this.#listeners) process.after(this.#random.int(0, 20), missed)
  }

  /** The edge as one process sees it. */
  natsOf(process: Process): SimulatedNats {
    return {
      publish: (_subject, id, payload, done) => {
        this.#faults.mayDie(process)
        this.#publish(process, id, payload, done)
        this.#faults.mayDie(process)
      },
      announce: (_subject, payload) => {
        this.#faults.mayDie(process)
        this.#announce(Buffer.from(payload))
        this.#faults.mayDie(process)
      },
      sendDirectly: (id, payload) => {
        this.#faults.mayDie(process)
        if (this.#faults.mutation !== 'nothing sent directly') this.#send(id, Buffer.from(payload))
        this.#faults.mayDie(process)
      },
      receiveDirectly: (deliver) => {
        const receiver = { process, deliver }
        this.#receivers.push(receiver)
        return () => {
          this.#receivers = this.#receivers.filter((one) => one !== receiver)
        }
      },
      listen: (_subject, heard, missed) => {
        const listener = { process, heard, missed }
        this.#listeners.push(listener)
        return () => {
          this.#listeners = this.#listeners.filter((one) => one !== listener)
        }
      },
      consume: (deliver) => {
        const consumer = { process, deliver }
        this.#consumers.push(consumer)
        process.after(0, () => this.#giveOut())
        return () => {
          this.#consumers = this.#consumers.filter((one) => one !== consumer)
        }
      },
    }
  }

  #giveOut(): void {
    for (const stored of this.#stored) this.#deliverLater(stored)
  }

  #publish(process: Process, id: string, payload: Uint8Array, done: (error: Error | null) => void): void {
    const refuse = (delayMs: number) =>
      process.after(delayMs, () => done(new Error('not stored, or not known')))
    if (this.#faults.isNatsDown) return void refuse(this.#random.int(0, 5))
    if (this.#faults.isStreamStuck || this.#faults.happens(0.1)) return void refuse(PUBLISH_BOUND_MS)
    // The server takes it whether the process lives on or not.
    this.#time.after(this.#random.int(0, 20), () => {
      if (this.#faults.isNatsDown || this.#faults.isStreamStuck) return void refuse(PUBLISH_BOUND_MS)
      this.#store(id, payload)
      if (this.#faults.happens(0.1)) return void refuse(PUBLISH_BOUND_MS)
      process.after(this.#random.int(0, 20), () => done(null))
    })
  }

  #store(id: string, data: Uint8Array): void {
    const before = this.#known.get(id)
    if (before !== undefined && this.#time.now - before < DUPLICATE_WINDOW_MS) return
    this.#known.set(id, this.#time.now)
    const stored = { id, data: Buffer.from(data), hiddenUntil: 0 }
    this.#stored.add(stored)
    this.#deliverLater(stored)
  }

  #deliverLater(stored: Stored): void {
    this.#time.after(this.#random.int(0, this.#faults.areOver ? 5 : 300), () => this.#deliver(stored))
  }

  #deliver(stored: Stored): void {
    if (this.#faults.isNatsDown || this.#faults.isStreamStuck) return
    if (!this.#stored.has(stored) || stored.hiddenUntil > this.#time.now) return
    const consumers = this.#consumers.filter(({ process }) => process.isAlive)
    if (consumers.length === 0) return
    const { process, deliver } = this.#random.pick(consumers)
    this.#hide(stored)
    const acknowledge = () => {
      this.#faults.mayDie(process)
      if (!this.#faults.isNatsDown && !this.#faults.happens(0.1)) this.#stored.delete(stored)
    }
    process.after(this.#random.int(0, 10), () => {
      deliver({
        messageId: stored.id,
        data: stored.data,
        acknowledge,
        keep: () => {
          if (process.isAlive && !this.#faults.isNatsDown) this.#hide(stored)
        },
        release: () => this.#deliverLater(stored),
      })
    })
    // Delivered a second time although the first is still at work.
    if (this.#faults.happens(0.1)) {
      stored.hiddenUntil = 0
      this.#deliverLater(stored)
    }
  }

  #hide(stored: Stored): void {
    stored.hiddenUntil = this.#time.now + ACKNOWLEDGE_WAIT_MS
    this.#time.after(ACKNOWLEDGE_WAIT_MS, () => this.#deliver(stored))
  }

  /** One of the settlers gets it, unless it is lost. */
  #send(messageId: string, data: Buffer): void {
    const receivers = this.#receivers.filter(({ process }) => process.isAlive)
    if (receivers.length === 0 || this.#faults.isNatsDown || this.#faults.happens(0.15)) return
    const { process, deliver } = this.#random.pick(receivers)
    process.after(this.#random.int(0, 200), () =>
      deliver({ messageId, data, acknowledge() {}, keep() {}, release() {} }),
    )
  }

  #announce(payload: Buffer): void {
    if (this.#faults.isNatsDown) return
    for (const { process, heard } of this.#listeners) {
      if (this.#faults.happens(0.15)) continue
      const times = this.#faults.happens(0.05) ? 2 : 1
      for (let time = 0; time < times; time++)
        process.after(this.#random.int(0, this.#faults.areOver ? 5 : 200), () => heard(payload))
    }
  }
}
