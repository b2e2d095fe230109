/**
 * Messages between processes of one group, to all or to one: core NATS, nothing is stored. Messages from one process
 * to another arrive in the order in which they were sent. It has a separate connection, so that messages do not queue
 * behind settlements and the end of a process is noticed at once.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node'
import { Connection, type NatsLog } from './connection.ts'

const NO_RESPONDERS = 503

export interface MailboxHandlers {
  /** Called with a message to all or to this process. */
  onMessage(payload: Uint8Array): void
  /** Called when no process has this address: it has ended, or has lost NATS. */
  onUndelivered(to: string): void
  /** Called when connected and subscribed. */
  onConnected(): void
  onDisconnected(): void
}

export interface Mailbox {
  /** Sends to one process. The message is lost while NATS is down. */
  send(to: string, payload: string): void
  /** Sends to every process of the group, this one included. */
  announce(payload: string): void
  close(): Promise<void>
}

interface MailboxOptions {
  readonly url: string
  /** Shown by the server among its connections. */
  readonly name: string
  readonly log: NatsLog
  /** Subject that the group's subjects begin with. */
  readonly group: string
  /** One token of a subject that only this process has. */
  readonly address: string
}

/** Returns at once and keeps connecting. The handlers are called once this has returned. */
export function openMailbox(options: MailboxOptions, handlers: MailboxHandlers): Mailbox {
  const { group, address, log } = options
  const connection = new Connection(options.url, options.name, log)
  const returns = `${group}.returned.${address}`
  const publish = (subject: string, payload: string, reply?: string) => {
    try {
      connection.current?.publish(subject, payload, reply === undefined ? {} : { reply })
    } catch (error) {
      // Closed this very moment. `onDisconnected` reports the loss.
      log.warn({ reason: (error as Error).message, subject }, 'Lost a rate-limit message')
    }
  }
  const listen = (
    fresh: NatsConnection,
    subject: string,
    heard: (payload: Uint8Array) => void,
  ): Subscription =>
    fresh.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) heard(message.data)
      },
    })
  connection.use({
    onConnected(fresh) {
      listen(fresh, `${group}.all`, handlers.onMessage)
      listen(fresh, `${group}.to.${address}`, handlers.onMessage)
      fresh.subscribe(`${returns}.*`, {
        callback: (error, message) => {
          if (error === null && message.headers?.code === NO_RESPONDERS)
            handlers.onUndelivered(message.subject.slice(returns.length + 1))
        },
      })
      handlers.onConnected()
    },
    onDisconnected: handlers.onDisconnected,
  })
  return {
    send: (to, payload) => publish(`${group}.to.${to}`, payload, `${returns}.${to}`),
    announce: (payload) => publish(`${group}.all`, payload),
    close: () => connection.close(),
  }
}
