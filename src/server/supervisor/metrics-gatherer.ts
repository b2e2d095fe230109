/**
 * Gathers the metrics of all processes when a scrape has reached one of them. The counters of a process outlive it:
 * Prometheus takes a sum that falls for counters that began again, and counts all of it once more.
 */
import type { EngineHealth } from '../../embedded/engine.ts'
import {
  addCounts,
  createMetrics,
  type MetricsSnapshot,
  mergeSnapshots,
  pickCounts,
} from '../../telemetry/metrics.ts'
import type { ToParent } from '../messages.ts'
import { VERSION } from '../version.ts'
import type { ServiceChild } from './children.ts'

/** Of a process that does not answer in time the sum has what it counted before. */
const SNAPSHOT_BOUND_MS = 2_000

type Health = () => Readonly<Partial<Record<string, EngineHealth>>>

export class MetricsGatherer {
  readonly #children: readonly ServiceChild[]
  readonly #metrics = createMetrics(VERSION)
  readonly #waiting = new Map<number, () => void>()
  /** The last snapshot of each child's present process, or of its last one while there is none. */
  readonly #last = new Map<ServiceChild, MetricsSnapshot>()
  /** Counted by processes that were replaced. */
  #ended: MetricsSnapshot = []
  #nextId = 1

  constructor(children: readonly ServiceChild[], health: Health) {
    this.#children = children
    for (const engine of ['postgres', 'nats', 'clickhouse', 'simulator']) {
      const read = () => {
        const state = health()[engine]?.state
        return state === undefined ? null : Number(state === 'ready')
      }
      this.#metrics.observe('tollgate_engine_up', read, { engine })
    }
  }

  /** Called at each start of a child: another process of it may have ended. */
  onReady(child: ServiceChild): void {
    this.#ended = addCounts(this.#ended, this.#last.get(child) ?? [])
    this.#last.delete(child)
  }

  onMessage(from: ServiceChild, message: ToParent): void {
    if (message.type === 'snapshot') {
      this.#last.set(from, message.snapshot as MetricsSnapshot)
      this.#waiting.get(message.id)?.()
      this.#waiting.delete(message.id)
    } else if (message.type === 'metrics') {
      void this.gatherText().then((text) => from.send({ type: 'metrics', id: message.id, text }))
    }
  }

  /** Returns the Prometheus text of the whole service. */
  async gatherText(): Promise<string> {
    const own = await this.#metrics.snapshot()
    const answered = await Promise.all(this.#children.map((child) => this.#ask(child)))
    // Read together, now: a child that was replaced meanwhile must not count twice.
    const snapshots = this.#children.map((child, index) => {
      const last = this.#last.get(child) ?? []
      return answered[index] ? last : pickCounts(last)
    })
    return mergeSnapshots([own, this.#ended, ...snapshots])
  }

  /** Asks for the child's snapshot. Resolves with whether it came in time. */
  #ask(child: ServiceChild): Promise<boolean> | boolean {
    if (!child.isReady) return false
    const id = this.#nextId++
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        resolve(false)
      }, SNAPSHOT_BOUND_MS)
      this.#waiting.set(id, () => {
        clearTimeout(timer)
        resolve(true)
      })
      child.send({ type: 'snapshot', id })
    })
  }
}
