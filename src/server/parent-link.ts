/** A child's side of the channel to its supervisor. Without the supervisor the child has no reason to live. */
import type { ToChild, ToParent } from './messages.ts'

const METRICS_BOUND_MS = 5_000
/** The id of a snapshot that was not requested. */
const NOT_ASKED = 0

interface ParentHandlers {
  onDrain(deadlineMs: number): void
  onSnapshot(): Promise<unknown>
  onEngines(engines: Readonly<Record<string, string>>): void
  /** Called when the supervisor has ended: settle what runs and end. */
  onOrphaned(): void
}

export class ParentLink {
  readonly #waiting = new Map<number, (text: string) => void>()
  #nextId = 1

  send(message: ToParent): void {
    if (process.connected) process.send?.(message)
  }

  listen(handlers: ParentHandlers): void {
    process.on('message', (message: ToChild) => {
      if (message.type === 'drain') handlers.onDrain(message.deadlineMs)
      else if (message.type === 'engines') handlers.onEngines(message.engines)
      else if (message.type === 'metrics') this.#onAnswer(message.id, message.text)
      else if (message.type === 'snapshot') void this.#sendSnapshot(message.id, handlers)
    })
    process.on('disconnect', () => handlers.onOrphaned())
    // The supervisor was killed while this process started: the event has passed.
    if (!process.connected) handlers.onOrphaned()
  }

  /** Returns the metrics of the whole service, which only the supervisor can gather. */
  askMetrics(): Promise<string> {
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        reject(new Error('the supervisor did not gather the metrics in time'))
      }, METRICS_BOUND_MS)
      this.#waiting.set(id, (text) => {
        clearTimeout(timer)
        resolve(text)
      })
      this.send({ type: 'metrics', id })
    })
  }

  /** Sends what the process counted once more, before it ends: no scrape can ask it then. */
  async sendLastSnapshot(snapshot: Promise<unknown>): Promise<void> {
    const message: ToParent = { type: 'snapshot', id: NOT_ASKED, snapshot: await snapshot }
    await new Promise<void>((resolve) => {
      if (process.connected) process.send?.(message, () => resolve())
      else resolve()
    })
  }

  #onAnswer(id: number, text: string): void {
    this.#waiting.get(id)?.(text)
    this.#waiting.delete(id)
  }

  async #sendSnapshot(id: number, handlers: ParentHandlers): Promise<void> {
    this.send({ type: 'snapshot', id, snapshot: await handlers.onSnapshot() })
  }
}
