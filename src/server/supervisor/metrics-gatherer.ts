/** Gathers the metrics of all processes when a scrape has reached one of them. */
import type { EngineHealth } from '../../embedded/engine.ts'
import { createMetrics, type MetricsSnapshot, mergeSnapshots } from '../../telemetry/metrics.ts'
import type { ToParent } from '../messages.ts'
import { VERSION } from '../version.ts'
import type { ServiceChild } from './children.ts'

/** A process that does not answer in time is missing from the sum. */
const SNAPSHOT_BOUND_MS = 2_000

type Health = () => Readonly<Partial<Record<string, EngineHealth>>>

export class MetricsGatherer {
  readonly #children: readonly ServiceChild[]
  readonly #metrics = createMetrics(VERSION)
  readonly #waiting = new Map<number, (snapshot: MetricsSnapshot | null) => void>()
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

  onMessage(from: ServiceChild, message: ToParent): void {
    if (message.type === 'snapshot') {
      this.#waiting.get(message.id)?.(message.snapshot as MetricsSnapshot)
      this.#waiting.delete(message.id)
    } else if (message.type === 'metrics') {
      void this.#text().then((text) => from.send({ type: 'metrics', id: message.id, text }))
    }
  }

  async #text(): Promise<string> {
    const snapshots = await Promise.all(
      this.#children.filter((c) => c.isReady).map((c) => this.#snapshotOf(c)),
    )
    const own = await this.#metrics.snapshot()
    return mergeSnapshots([own, ...snapshots.filter((s) => s !== null)])
  }

  #snapshotOf(child: ServiceChild): Promise<MetricsSnapshot | null> {
    const id = this.#nextId++
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        resolve(null)
      }, SNAPSHOT_BOUND_MS)
      this.#waiting.set(id, (snapshot) => {
        clearTimeout(timer)
        resolve(snapshot)
      })
      child.send({ type: 'snapshot', id })
    })
  }
}
