/** Keeps the credentials of a gateway process true: changes as they happen, and totals that a lost message left behind. */
import type { Credentials } from '../../credentials/credentials.ts'
import type { Changes } from '../../postgres/changes.ts'
import { isAway } from '../../postgres/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { repeatUnlessBusy } from './engine-watch.ts'

/** Totals are published as they are booked; this interval covers a lost message. */
const WALLET_REFRESH_INTERVAL_MS = 5_000
const LISTEN_RETRY_MS = 1_000

export function watchChanges(changes: Changes, credentials: Credentials, log: Log) {
  let isClosed = false
  let stopListening: (() => Promise<void>) | null = null
  let listenTimer: NodeJS.Timeout | null = null

  const listen = async () => {
    try {
      stopListening = await changes.listen({
        onChange: (kind, id) => {
          if (kind !== 'channel') credentials.forgetChanged(kind, id)
        },
        onReset: () => credentials.reset(),
      })
      credentials.reset()
    } catch (error) {
      if (!isAway(error))
        log.error({ err: error }, 'Failed to listen for changes of keys and wallets; trying again')
      if (!isClosed) listenTimer = setTimeout(() => void listen(), LISTEN_RETRY_MS).unref()
    }
  }
  void listen()
  const refreshing = repeatUnlessBusy(WALLET_REFRESH_INTERVAL_MS, () =>
    credentials.refreshWallets(credentials.walletIds),
  )
  return {
    async close(): Promise<void> {
      isClosed = true
      clearInterval(refreshing)
      if (listenTimer) clearTimeout(listenTimer)
      await stopListening?.().catch(() => {})
    },
  }
}
