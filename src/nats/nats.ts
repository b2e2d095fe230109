/** The edge to NATS: the streams of settlements, tasks and deliveries, and words to all processes. */
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { DIRECT_SUBJECT, SETTLEMENT_CONSUMER } from '../../schemas/events/event.ts'
import { Connection, type NatsHealth, type NatsLog } from './connection.ts'
import { Consumer, type Delivery } from './consumer.ts'
import { type Published, Publisher } from './publisher.ts'
import { countMessages, DELIVERIES, ensureStream, SETTLEMENTS, type StreamPlan, TASKS } from './stream.ts'
import { askAll } from './survey.ts'

export type { NatsLog } from './connection.ts'
export type { Delivery } from './consumer.ts'

/** Between tries to make the stream; JetStream may be up later than its server. */
const ENSURE_RETRY_MS = 250
/**
 * Before a stream that was there is made again. A server that removes one reports it missing some moments before
 * it removes its files, and takes with them those of a new one of the same name, which then never delivers (2.9.10).
 */
const REMOVAL_MS = 1_000
/** Many messages may be published again at once. */
const CHECK_INTERVAL_MS = 1_000
const PING_BOUND_MS = 2_000

export interface Nats {
  health(): NatsHealth
  /** `close` was called: whatever is tried again fails. */
  readonly isClosed: boolean
  /** Waits for a connection, at most this long. */
  awaitConnection(boundMs: number): Promise<void>
  /**
   * Measures a round trip.
   * @throws Error when NATS does not answer within 2 s
   */
  ping(): Promise<void>
  /**
   * Publishes to a stream. `done` is called once, after this returned: with null when the message is stored, by this
   * or an earlier try.
   */
  publish(subject: string, messageId: string, payload: Uint8Array, done: Published): void
  /** Sends to the current subscribers; lost while NATS is down. */
  announce(subject: string, payload: string): void
  /**
   * Subscribes to notifications, also across losses of the connection; `onGap` is called after each loss:
   * notifications sent meanwhile are lost. The returned function ends it.
   */
  listen(subject: string, onMessage: (payload: Uint8Array) => void, onGap: () => void): () => void
  /** Sends a settlement message to one settler; lost where none listens. */
  sendDirectly(messageId: string, payload: Uint8Array): void
  /** Receives settlement messages that are sent directly, each at one settler. The returned function ends it. */
  receiveDirectly(deliver: (delivery: Delivery) => void): () => void
  /**
   * Sends a request to all processes, and returns the answers within the bound; null without a connection.
   * @param count ends with this many answers, if given
   */
  survey(subject: string, boundMs: number, count?: number): Promise<string[] | null>
  /** Answers each request on the subject, over losses of the connection, until `close`. `reply` must not reject. */
  answer(subject: string, reply: () => string | Promise<string>): void
  /**
   * Counts the settlement messages of a subject, which may have wildcards, that are stored and not acknowledged.
   * @throws Error when JetStream does not answer
   */
  countSettlements(subject: string): Promise<number>
  /** Consumes settlement messages for this settler, at most 64 unfinished ones. The returned function ends it. */
  consume(deliver: (delivery: Delivery) => void): () => void
  /** Consumes messages about tasks for this process, at most 512 unfinished ones. The returned function ends it. */
  consumeTasks(deliver: (delivery: Delivery) => void): () => void
  /** Consumes messages about deliveries for this process, at most 4,096 unfinished ones. The returned function ends it. */
  consumeDeliveries(deliver: (delivery: Delivery) => void): () => void
  close(): Promise<void>
}

interface NatsOptions {
  readonly url: string
  /** Shown by the server among its connections. */
  readonly name: string
  readonly log: NatsLog
  /** Replicas that streams are to have; null: as the cluster allows. Default: those that are there stay as they are. */
  readonly replicas?: number | null
}

/** Returns at once and keeps connecting: NATS may come later, go, and come back. */
export function openNats({ url, name, log, replicas }: NatsOptions): Nats {
  const connection = new Connection(url, name, log)
  const monitor = (plan: StreamPlan) => new StreamMonitor(connection, log, plan, replicas)
  const settlements = monitor(SETTLEMENTS)
  const tasks = monitor(TASKS)
  const deliveries = monitor(DELIVERIES)
  const monitors = [settlements, tasks, deliveries]
  const publisher = new Publisher(connection, {
    onMissing() {
      for (const each of monitors) each.ensure()
    },
    onRepeated() {
      for (const each of monitors) each.check()
    },
  })
  return {
    health: () => connection.health(),
    get isClosed() {
      return connection.isClosed
    },
    awaitConnection: (boundMs) => awaitConnection(connection, boundMs),
    async ping() {
      const { current } = connection
      if (current === null) throw new Error('NATS is not connected.')
      const bound = new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error('NATS does not answer.')), PING_BOUND_MS).unref()
      })
      await Promise.race([current.flush(), bound])
    },
    publish: (subject, messageId, payload, done) => publisher.publish(subject, messageId, payload, done),
    announce(subject, payload) {
      try {
        connection.current?.publish(subject, payload)
      } catch (error) {
        // Closed this very moment, or refused for its size: a notification may be lost, and its readers query the database.
        log.warn({ reason: (error as Error).message, subject }, 'Lost a notification')
      }
    },
    sendDirectly(messageId, payload) {
      try {
        // A copy, because the client sends it later.
        connection.current?.publish(`${DIRECT_SUBJECT}.${messageId}`, Buffer.from(payload))
      } catch (error) {
        log.warn(
          { reason: (error as Error).message, batch: messageId },
          'Lost a batch of settlements; it is sent again',
        )
      }
    },
    receiveDirectly: (deliver) =>
      listen(
        connection,
        `${DIRECT_SUBJECT}.>`,
        ({ subject, data }) => deliver(directDelivery(subject, data)),
        {
          queue: SETTLEMENT_CONSUMER,
        },
      ),
    listen: (subject, onMessage, onGap) =>
      listen(connection, subject, ({ data }) => onMessage(data), { onGap }),
    survey: async (subject, boundMs, count) =>
      connection.current === null ? null : askAll(connection.current, subject, boundMs, count),
    answer: (subject, reply) => answer(connection, subject, reply),
    async countSettlements(subject) {
      if (connection.current === null) throw new Error('NATS is not connected.')
      return countMessages(connection.current, SETTLEMENTS, subject)
    },
    consume: (deliver) => settlements.consume(deliver),
    consumeTasks: (deliver) => tasks.consume(deliver),
    consumeDeliveries: (deliver) => deliveries.consume(deliver),
    async close() {
      for (const each of monitors) each.stop()
      await connection.close()
      publisher.close()
    },
  }
}

function awaitConnection(connection: Connection, boundMs: number): Promise<void> {
  return new Promise((resolve) => {
    const listener = { onConnected: () => end(), onDisconnected: () => undefined }
    const timer = setTimeout(() => end(), boundMs)
    const end = () => {
      clearTimeout(timer)
      connection.leave(listener)
      resolve()
    }
    connection.use(listener)
  })
}

function answer(connection: Connection, subject: string, reply: () => string | Promise<string>): void {
  connection.use({
    onConnected(fresh) {
      fresh.subscribe(subject, {
        callback: (error, message) => {
          if (error !== null) return
          void Promise.resolve(reply()).then((text) => !fresh.isClosed() && message.respond(text))
        },
      })
    },
    onDisconnected: () => undefined,
  })
}

/** A message that nothing stores: its sender sends it again until it is booked. */
const directDelivery = (subject: string, data: Uint8Array): Delivery => ({
  messageId: subject.slice(DIRECT_SUBJECT.length + 1),
  data,
  acknowledge() {},
  keep() {},
  release() {},
})

function listen(
  connection: Connection,
  subject: string,
  onMessage: (message: Msg) => void,
  { queue, onGap = () => {} }: { queue?: string; onGap?: () => void },
): () => void {
  let unsubscribe = () => {}
  let isFirst = true
  const listener = {
    onConnected(fresh: NatsConnection) {
      const subscription = fresh.subscribe(subject, {
        ...(queue !== undefined && { queue }),
        callback: (error, message) => {
          if (error === null) onMessage(message)
        },
      })
      unsubscribe = () => {
        if (!fresh.isClosed()) subscription.unsubscribe()
      }
      if (!isFirst) onGap()
      isFirst = false
    },
    onDisconnected() {},
  }
  connection.use(listener)
  return () => {
    connection.leave(listener)
    unsubscribe()
  }
}

/** Creates a stream where it is missing: after every connecting, and whenever a user of it finds it missing. */
class StreamMonitor {
  readonly #connection: Connection
  readonly #log: NatsLog
  readonly #plan: StreamPlan
  readonly #replicas: number | null | undefined
  #lastRefusal = ''
  readonly #consumers = new Set<Consumer>()
  #isRunning = false
  #isStopped = false
  #wasThere = false
  #checkedAt = 0
  /** Consumers wait for the stream. */
  #isAwaited = false

  constructor(connection: Connection, log: NatsLog, plan: StreamPlan, replicas?: number | null) {
    this.#replicas = replicas
    this.#connection = connection
    this.#log = log
    this.#plan = plan
    connection.use({ onConnected: () => this.ensure(), onDisconnected: () => undefined })
  }

  consume(deliver: (delivery: Delivery) => void): () => void {
    const onMissing = () => this.ensure()
    const consumer = new Consumer(this.#connection, { plan: this.#plan, onMissing, deliver })
    this.#consumers.add(consumer)
    this.ensure()
    return () => {
      this.#consumers.delete(consumer)
      consumer.stop()
    }
  }

  /** Checks now, and starts the consumers. */
  ensure(): void {
    this.#isAwaited = true
    this.#start()
  }

  /** Checks that the stream still has its settings. */
  check(): void {
    if (performance.now() - this.#checkedAt > CHECK_INTERVAL_MS) this.#start()
  }

  #start(): void {
    if (this.#isRunning || this.#isStopped) return
    this.#isRunning = true
    void this.#run().finally(() => {
      this.#isRunning = false
      // A request arrived just as the check ended.
      if (this.#isAwaited && this.#connection.current !== null) this.#start()
    })
  }

  stop(): void {
    this.#isStopped = true
  }

  #onReplicasRefused(reason: string): void {
    if (reason === this.#lastRefusal) return
    this.#lastRefusal = reason
    const title = `NATS refuses nats.replicas of the stream of ${this.#plan.title}; it stays as it is`
    this.#log.warn({ reason, replicas: this.#replicas }, title)
  }

  async #run(): Promise<void> {
    let lastMessage = ''
    while (!this.#isStopped) {
      const { current } = this.#connection
      if (current === null) return
      try {
        await ensureStream(current, this.#plan, {
          missingPauseMs: this.#wasThere ? REMOVAL_MS : 0,
          replicas: this.#replicas,
          onRefused: (reason) => this.#onReplicasRefused(reason),
        })
        this.#wasThere = true
        this.#checkedAt = performance.now()
        if (this.#isAwaited) for (const consumer of this.#consumers) consumer.onReady()
        this.#isAwaited = false
        return
      } catch (error) {
        const { message } = error as Error
        if (message !== lastMessage && !current.isClosed())
          this.#log.warn({ reason: message }, `The stream of ${this.#plan.title} cannot be created; retrying`)
        lastMessage = message
        await new Promise((resolve) => setTimeout(resolve, ENSURE_RETRY_MS))
      }
    }
  }
}
