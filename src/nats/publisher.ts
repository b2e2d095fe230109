/**
 * Publishing to the stream without a promise a message: one inbox for all replies, and a map of who waits for which.
 */
import { createInbox, headers, type Msg, type NatsConnection } from '@nats-io/transport-node'
import type { Connection } from './connection.ts'

export type Published = (error: Error | null) => void

/** A message that is not acknowledged in this time is published again by its sender. */
const ACKNOWLEDGEMENT_BOUND_MS = 5_000
const SWEEP_INTERVAL_MS = 1_000
const NO_RESPONDERS = 503

/** Called when a stream may not be in order. */
interface StreamFaultHandlers {
  /** Called when no stream takes the messages. */
  onMissing(): void
  /** Called when the stream already has the message: it was stored before and not processed yet. */
  onRepeated(): void
}

interface Waiting {
  readonly done: Published
  readonly since: number
}

export class Publisher {
  readonly #connection: Connection
  readonly #alarm: StreamFaultHandlers
  /** By the last token of the reply subject, in the order of publishing. */
  readonly #waiting = new Map<string, Waiting>()
  #inbox = ''
  #next = 1
  #sweep: NodeJS.Timeout | undefined

  constructor(connection: Connection, alarm: StreamFaultHandlers) {
    this.#connection = connection
    this.#alarm = alarm
    connection.use({ onConnected: (fresh) => this.#onUp(fresh), onDisconnected: () => this.#onDown() })
  }

  /** Publishes. `done` is called once, never before this returns. Each id is stored once. */
  publish(subject: string, messageId: string, payload: Uint8Array, done: Published): void {
    const connection = this.#connection.current
    if (connection === null) return void queueMicrotask(() => done(new Error('NATS is not connected.')))
    const token = String(this.#next++)
    const head = headers()
    head.set('Nats-Msg-Id', messageId)
    this.#waiting.set(token, { done, since: performance.now() })
    this.#sweep ??= setInterval(() => this.#expire(), SWEEP_INTERVAL_MS).unref()
    try {
      // A copy: the client sends it later, and by then it may have been booked by an earlier try and its memory be in use.
      const reply = `${this.#inbox}.${token}`
      connection.publish(subject, Buffer.from(payload), { headers: head, reply })
    } catch (error) {
      queueMicrotask(() => this.#settle(token, error as Error))
    }
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#onDown()
  }

  #onUp(connection: NatsConnection): void {
    this.#inbox = createInbox()
    connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onAnswer(message)
      },
    })
  }

  #onDown(): void {
    for (const token of [...this.#waiting.keys()])
      this.#settle(token, new Error('The connection to NATS was lost before the acknowledgement.'))
  }

  #onAnswer(message: Msg): void {
    const token = message.subject.slice(message.subject.lastIndexOf('.') + 1)
    this.#settle(token, this.#findRefusal(message))
  }

  #findRefusal(message: Msg): Error | null {
    if (message.headers?.code === NO_RESPONDERS) {
      this.#alarm.onMissing()
      return new Error('NATS has no stream for it.')
    }
    try {
      const answer = message.json<{ duplicate?: boolean; error?: { description?: string } }>()
      if (answer.duplicate === true) this.#alarm.onRepeated()
      return answer.error === undefined ? null : new Error(`NATS refused: ${answer.error.description}`)
    } catch {
      return new Error('NATS acknowledged with something unreadable.')
    }
  }

  #settle(token: string, error: Error | null): void {
    const waiting = this.#waiting.get(token)
    this.#waiting.delete(token)
    waiting?.done(error)
  }

  #expire(): void {
    const before = performance.now() - ACKNOWLEDGEMENT_BOUND_MS
    for (const [token, { since }] of this.#waiting) {
      if (since > before) break
      this.#settle(token, new Error(`NATS did not acknowledge within ${ACKNOWLEDGEMENT_BOUND_MS} ms.`))
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}
