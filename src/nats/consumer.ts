/** Messages of a stream, pulled as they are worked off. One request for more is open at a time. */
import { createInbox, type Msg, type NatsConnection, nanos, type Subscription } from '@nats-io/transport-node'
import type { Connection, ConnectionListener } from './connection.ts'
import type { StreamPlan } from './stream.ts'

/** One message. It comes again unless it is acknowledged, to this process or another. */
export interface Delivery {
  /** The published id; null for a message of another sender. */
  readonly messageId: string | null
  readonly data: Uint8Array
  /** Reports success: the message is never delivered again. */
  acknowledge(): void
  /** Extends the time: another process does not get the message yet. */
  keep(): void
  /** Returns the message: some process gets it, now or after a delay. */
  release(delayMs?: number): void
}

/** The server ends a request after this; the client drops it a little later, in case the end is lost. */
const REQUEST_EXPIRES_MS = 5_000
const REQUEST_LOST_AFTER_MS = 6_000
/** Before the next request after one that found no stream, or a server that is not ready. */
const REFUSED_PAUSE_MS = 200
const REQUEST_TIMEOUT = 408
const NO_MESSAGES = 404
const FIRST_ERROR = 400
const CONSUMER_GONE = 409
const NO_RESPONDERS = 503

const encoder = new TextEncoder()
const ACKNOWLEDGE = encoder.encode('+ACK')
const KEEP = encoder.encode('+WPI')
const RELEASE = encoder.encode('-NAK')
const releaseLater = (delayMs: number): Uint8Array =>
  encoder.encode(`-NAK ${JSON.stringify({ delay: nanos(Math.max(1, Math.round(delayMs))) })}`)

/** Functions of a consumer's surroundings. */
interface ConsumerOptions {
  readonly plan: StreamPlan
  /** Called when the stream or its consumer may be missing. */
  readonly onMissing: () => void
  readonly deliver: (delivery: Delivery) => void
}

export class Consumer implements ConnectionListener {
  readonly #connection: Connection
  readonly #options: ConsumerOptions
  #session: Session | null = null

  constructor(connection: Connection, options: ConsumerOptions) {
    this.#connection = connection
    this.#options = options
    connection.use(this)
  }

  onConnected(connection: NatsConnection): void {
    this.#session = new Session(connection, this.#options)
  }

  onDisconnected(): void {
    this.#session?.stop()
    this.#session = null
  }

  /** Called when the stream exists. An earlier request would get no answer. */
  onReady(): void {
    this.#session?.request()
  }

  /** Stops requesting messages. Delivered ones can still be acknowledged. */
  stop(): void {
    this.#connection.leave(this)
    this.onDisconnected()
  }
}

/** Pulling over one connection. */
class Session {
  readonly #connection: NatsConnection
  readonly #options: ConsumerOptions
  readonly #nextSubject: string
  /** Each request has a separate subject below it: the late end of an old request does not end the current one. */
  readonly #inbox = createInbox()
  readonly #subscription: Subscription
  #serial = 0
  #requested = 0
  #unfinished = 0
  #timer: NodeJS.Timeout | undefined
  #isRefillComing = false
  #isStopped = false

  constructor(connection: NatsConnection, options: ConsumerOptions) {
    const { stream, consumer } = options.plan
    this.#connection = connection
    this.#options = options
    this.#nextSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    this.#subscription = connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#take(message)
      },
    })
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    if (!this.#connection.isClosed()) this.#subscription.unsubscribe()
  }

  /**
   * Requests messages. An open request continues: for a time there may be more messages here than one request asks
   * for.
   */
  request(): void {
    if (this.#isStopped || this.#connection.isClosed()) return
    clearTimeout(this.#timer)
    this.#requested = this.#options.plan.maxUnfinished - this.#unfinished
    if (this.#requested <= 0) return
    this.#serial += 1
    const request = { batch: this.#requested, expires: nanos(REQUEST_EXPIRES_MS) }
    const reply = `${this.#inbox}.${this.#serial}`
    this.#connection.publish(this.#nextSubject, JSON.stringify(request), { reply })
    this.#timer = setTimeout(() => {
      this.#options.onMissing()
      this.request()
    }, REQUEST_LOST_AFTER_MS)
  }

  /**
   * Takes a message. A message keeps the subject that it was published on; the server's status of a request has the
   * request's own.
   */
  #take(message: Msg): void {
    if (!message.subject.startsWith(this.#inbox)) return this.#onTaken(message)
    if (message.subject !== `${this.#inbox}.${this.#serial}`) return
    const code = message.headers?.code ?? 0
    if (code === REQUEST_TIMEOUT || code === NO_MESSAGES) return this.request()
    if (code < FIRST_ERROR) return
    if (code === NO_RESPONDERS || code === CONSUMER_GONE) this.#options.onMissing()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.request(), REFUSED_PAUSE_MS)
  }

  #onTaken(message: Msg): void {
    this.#requested -= 1
    this.#unfinished += 1
    let isFinished = false
    const say = (word: Uint8Array, isEnd: boolean) => {
      if (isFinished) return
      isFinished = isEnd
      // After a loss of the connection the message comes again in any case.
      if (!this.#connection.isClosed() && message.reply) this.#connection.publish(message.reply, word)
      if (isEnd) this.#onFinished()
    }
    this.#options.deliver({
      messageId: message.headers?.get('Nats-Msg-Id') || null,
      data: message.data,
      acknowledge: () => say(ACKNOWLEDGE, true),
      keep: () => say(KEEP, false),
      release: (delayMs = 0) => say(delayMs > 0 ? releaseLater(delayMs) : RELEASE, true),
    })
  }

  /**
   * Called when a message is finished. Many finish at once: one request follows for all of them, once there is enough
   * room.
   */
  #onFinished(): void {
    this.#unfinished -= 1
    if (this.#requested > 0 || this.#isRefillComing) return
    this.#isRefillComing = true
    queueMicrotask(() => {
      this.#isRefillComing = false
      if (this.#requested <= 0 && this.#unfinished <= this.#options.plan.refillAt) this.request()
    })
  }
}
