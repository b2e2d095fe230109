/** Applies the retention of the call log: at the start, daily, and whenever the setting changes. */
import { defer, race, repeat, retry, Subject, type Subscription, take, timer } from 'rxjs'
import type { CallTables } from '../../src/clickhouse/call-log.ts'
import { DAY_MS } from '../../src/core/call-log/window.ts'

const RETRY_MS = 60_000

export interface LogRetentionDeps {
  readonly callLog: CallTables
  /** Returns the retention in days; null keeps calls forever. Called before each run. */
  readonly retentionDays: () => number | null
  readonly now?: () => number
  readonly intervalMs?: number
  readonly retryMs?: number
  /** Called with the dropped months: `202601`. */
  readonly onDropped?: (months: readonly string[]) => void
  readonly onFailed?: (error: Error) => void
}

interface LogRetention {
  start(): void
  /** Called when the setting may have changed. */
  wake(): void
  /** Stops; resolves when a running drop has ended. */
  stop(): Promise<void>
}

export function logRetention(deps: LogRetentionDeps): LogRetention {
  const { callLog, retentionDays, now = Date.now, intervalMs = DAY_MS, retryMs = RETRY_MS } = deps
  const { onDropped = () => {}, onFailed = () => {} } = deps
  const wakes = new Subject<void>()
  let running: Promise<unknown> = Promise.resolve()
  let subscription: Subscription | null = null
  let isWoken = false

  async function round(): Promise<void> {
    isWoken = false
    const days = retentionDays()
    if (days === null) return
    const months = await callLog.dropCallsBefore(now() - days * DAY_MS)
    if (months.length > 0) onDropped(months)
  }

  const nextAfter = (delayMs: number) => race(wakes, timer(isWoken ? 0 : delayMs)).pipe(take(1))

  const rounds = defer(() => {
    const work = round()
    running = work.catch(() => {})
    return work
  }).pipe(
    repeat({ delay: () => nextAfter(intervalMs) }),
    retry({
      delay: (error: Error) => {
        onFailed(error)
        return nextAfter(retryMs)
      },
    }),
  )

  return {
    start() {
      subscription ??= rounds.subscribe()
    },
    wake() {
      isWoken = true
      wakes.next()
    },
    async stop() {
      subscription?.unsubscribe()
      subscription = null
      await running
    },
  }
}
