/** Whether the engines answer, for `/readyz` and `/metrics`. Each is pinged in turn, wherever it runs. */
import { describeTlsFailure } from '../../core/tls-failure.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

const PING_INTERVAL_MS = 1_000
const PING_TIMEOUT_MS = 5_000

interface WatchedEngine {
  /** As a person calls it: ClickHouse. */
  readonly title: string
  /** The label in `tollgate_engine_up`. */
  readonly name: string
  /** Rejects, or takes too long, while it does not answer. */
  readonly ping: () => Promise<unknown>
  /** Default: one second. */
  readonly intervalMs?: number
  /** Called after each ping. Must not throw. */
  readonly onPinged?: (isUp: boolean) => void
}

interface EngineWatch {
  /** Returns the titles of the engines that did not answer the last check. Before the first check all count as up. */
  down(): string[]
  close(): void
}

export function watchEngines(engines: readonly WatchedEngine[], metrics: Metrics, log: Log): EngineWatch {
  const down = new Set<string>()
  let isClosed = false

  async function ping({ title, ping, onPinged }: WatchedEngine): Promise<void> {
    const problem = await Promise.race([ping(), rejectLate(title)]).then(
      () => null,
      (error: Error) => error,
    )
    const isUp = problem === null
    if (isClosed) return
    if (isUp && down.delete(title)) log.info({ engine: title }, 'Engine answers again')
    if (!isUp && !down.has(title)) {
      down.add(title)
      const remedy = describeTlsFailure(title, problem)
      log.error(
        { engine: title, reason: problem.message, ...(remedy && { remedy }) },
        'Engine does not answer',
      )
    }
    onPinged?.(isUp)
  }
  const timers = engines.map((engine) => {
    metrics.observe('tollgate_engine_up', () => Number(!down.has(engine.title)), { engine: engine.name })
    return repeatUnlessBusy(engine.intervalMs ?? PING_INTERVAL_MS, () => ping(engine))
  })
  return {
    down: () => [...down],
    close() {
      isClosed = true
      for (const timer of timers) clearInterval(timer)
    },
  }
}

const rejectLate = (title: string): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`${title} does not answer`)), PING_TIMEOUT_MS).unref()
  })

/** Runs `work` at the interval; skips a round while the one before still runs. */
export function repeatUnlessBusy(intervalMs: number, work: () => Promise<void>): NodeJS.Timeout {
  let isBusy = false
  const round = async () => {
    if (isBusy) return
    isBusy = true
    await work().finally(() => {
      isBusy = false
    })
  }
  return setInterval(() => void round(), intervalMs).unref()
}
