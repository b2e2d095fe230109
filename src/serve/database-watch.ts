/** Keeps the credentials of a gateway process true: changes as they happen, and whether PostgreSQL answers. */
import type { Credentials } from '../../pipelines/credentials.ts'
import type { Database } from '../postgres/types.ts'
import type { Log } from '../telemetry/log.ts'

const PING_INTERVAL_MS = 1_000
/** Totals go out as they are booked; this catches what a lost message left behind. */
const WALLET_REFRESH_INTERVAL_MS = 5_000
const LISTEN_RETRY_MS = 1_000

export interface DatabaseWatch {
  readonly isUp: () => boolean
  close(): Promise<void>
}

export function watchDatabase(database: Database, credentials: Credentials, log: Log): DatabaseWatch {
  let isUp = true
  let isClosed = false
  let stopListening: (() => Promise<void>) | null = null
  let listenTimer: NodeJS.Timeout | null = null

  const listen = async () => {
    try {
      stopListening = await database.listenChanges({
        onChange: (kind, id) => credentials.changed(kind, id),
        onReset: () => credentials.reset(),
      })
      credentials.reset()
    } catch {
      if (!isClosed) listenTimer = setTimeout(() => void listen(), LISTEN_RETRY_MS).unref()
    }
  }
  const ping = async () => {
    const answers = await database.ping().then(
      () => true,
      () => false,
    )
    if (isClosed) return
    if (answers !== isUp)
      log[answers ? 'info' : 'error']({}, answers ? 'PostgreSQL answers again' : 'PostgreSQL does not answer')
    isUp = answers
    if (answers) credentials.databaseFound()
    else credentials.databaseLost()
  }
  void listen()
  const timers = [
    every(PING_INTERVAL_MS, ping),
    every(WALLET_REFRESH_INTERVAL_MS, () => credentials.refreshWallets(credentials.accountIds)),
  ]
  return {
    isUp: () => isUp,
    async close() {
      isClosed = true
      for (const timer of timers) clearInterval(timer)
      if (listenTimer) clearTimeout(listenTimer)
      await stopListening?.().catch(() => {})
    },
  }
}

/** A round that still runs is not joined by another. */
function every(intervalMs: number, work: () => Promise<void>): NodeJS.Timeout {
  let isRunning = false
  const round = async () => {
    if (isRunning) return
    isRunning = true
    await work().finally(() => {
      isRunning = false
    })
  }
  return setInterval(() => void round(), intervalMs).unref()
}
