/** Sends signed webhooks of the payment provider, with every fault of the real ones. */

import { createHmac } from 'node:crypto'
import type { ProviderEvent } from './objects.ts'

const TIMEOUT_MS = 10_000
/** A failed delivery is retried after these pauses. */
const RETRY_MS = [500, 1_000, 2_000, 5_000, 15_000, 60_000]
const MAX_DELIVERIES = 10_000

export type WebhookTarget = { readonly url: string; readonly secret: string }

export type WebhookFaults = {
  /** `hold` keeps events until they are released; `drop` never sends them. */
  readonly mode: 'send' | 'hold' | 'drop'
  /** How many times each event is sent. */
  readonly copies: number
  readonly delayMs: number
  /** Replaces the secret of the target. */
  readonly secret: string | null
}

const NO_FAULTS: WebhookFaults = { mode: 'send', copies: 1, delayMs: 0, secret: null }

type Delivery = {
  readonly event: string
  readonly type: string
  /** Null without an answer. */
  readonly status: number | null
  readonly at: string
}

export class Webhooks {
  readonly deliveries: Delivery[] = []
  #target: WebhookTarget | null = null
  #faults = NO_FAULTS
  #held: ProviderEvent[] = []
  readonly #timers = new Set<NodeJS.Timeout>()

  get held(): readonly ProviderEvent[] {
    return this.#held
  }

  configure(target: WebhookTarget): void {
    this.#target = target
  }

  /** Faults that are left out are switched off. */
  setFaults(faults: Partial<WebhookFaults>): void {
    this.#faults = { ...NO_FAULTS, ...faults }
  }

  receive(event: ProviderEvent): void {
    const { mode, copies, delayMs } = this.#faults
    if (mode === 'drop') return
    if (mode === 'hold') this.#held.push(event)
    else for (let copy = 0; copy < copies; copy++) this.#later(delayMs, () => this.#send(event, 0))
  }

  /** Sends the held events, newest first if `isReversed`; resolves when all are answered. */
  async release(isReversed: boolean): Promise<void> {
    const events = isReversed ? this.#held.toReversed() : this.#held
    this.#held = []
    for (const event of events)
      for (let copy = 0; copy < this.#faults.copies; copy++) await this.#send(event, 0)
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  #later(ms: number, work: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      void work()
    }, ms)
    this.#timers.add(timer)
  }

  async #send(event: ProviderEvent, attempt: number): Promise<void> {
    if (this.#target === null) return
    const { url, secret } = this.#target
    const body = JSON.stringify(event)
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'stripe-signature': signature(body, this.#faults.secret ?? secret),
    }
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const status = await fetch(url, { method: 'POST', body, headers, signal, redirect: 'manual' }).then(
      (response) => response.status,
      () => null,
    )
    if (this.deliveries.length >= MAX_DELIVERIES) this.deliveries.shift()
    this.deliveries.push({ event: event.id, type: event.type, status, at: new Date().toISOString() })
    const isTaken = status !== null && status >= 200 && status < 300
    const pause = RETRY_MS[attempt]
    if (!isTaken && pause !== undefined) this.#later(pause, () => this.#send(event, attempt + 1))
  }
}

/** Signs a delivery when it is sent, however old the event is. */
function signature(body: string, secret: string): string {
  const at = Math.floor(Date.now() / 1000)
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`
}
