/** The settler: settlements into PostgreSQL, booked rows into ClickHouse. */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { bindIntegrityJobs } from '../../../pipelines/jobs/integrity.ts'
import { runJobs } from '../../../pipelines/jobs/run-jobs.ts'
import { Settler } from '../../../pipelines/settlement/settler.ts'
import { openCallLog } from '../../clickhouse/call-log.ts'
import { openLazyProvider } from '../../payments/provider.ts'
import type { Database } from '../../postgres/database.ts'
import type { StartWork } from '../background.ts'
import { scheduleDailyAudit } from './daily-audit.ts'
import { startLogMaintenance } from './log-retention.ts'
import { maintainPartitions } from './partitions.ts'

/** Idempotency records outlive their seven days by this much at most. */
const PURGE_INTERVAL_MS = 60_000
const STOP_BOUND_MS = 5_000
const CLOSE_BOUND_MS = 2_000
/** Lines that are no settlement: kept beside the journals, for a person to read. */
const MALFORMED_FILE = 'malformed-settlements.ndjson'
const MS_PER_SECOND = 1000

export const startSettler: StartWork = async ({ boot, database, nats, metrics, log }) => {
  const callLog = openCallLog(boot.clickhouseUrl, boot.clickhouseCluster)
  const copier = usageCopier({
    database,
    callLog,
    onEvent: (event) =>
      event.event === 'failed'
        ? log.error(
            { err: event.error, failures: event.failures, retry_ms: event.retryMs },
            'Failed to copy to the call log',
          )
        : log.info({ failures: event.failures }, 'Copy to the call log works again'),
  })
  const booking = new Settler({
    nats,
    database,
    onBookedRows: () => copier.wake(),
    onMalformed: async (malformed) => {
      log.error(
        { message_id: malformed.messageId, reason: malformed.reason },
        `Dropped malformed settlement; kept in ${MALFORMED_FILE}`,
      )
      await database.bookings.keepMalformed(malformed.line, malformed.reason)
      metrics.metering.unbooked('malformed')
      await appendFile(join(boot.dataDir, MALFORMED_FILE), `${JSON.stringify(malformed)}\n`, { mode: 0o600 })
    },
    onRefused: (requestIds) => {
      for (const _ of requestIds) metrics.metering.unbooked('refused')
    },
    log,
  })
  copier.start()
  const openProvider = openLazyProvider(boot.payments)
  const audit = scheduleDailyAudit({ database, openProvider, metrics, log })
  const jobs = runJobs({ database, work: bindIntegrityJobs({ database, callLog, openProvider }), log })
  const keeper = startLogMaintenance(boot, callLog, log)
  const purging = setInterval(() => {
    purgeExpired(database).catch((error) => log.warn({ err: error }, 'Failed to remove expired records'))
  }, PURGE_INTERVAL_MS)
  const partitions = maintainPartitions(boot, database, log)
  metrics.observe('tollgate_log_lag_seconds', () => copier.health().lagMs / MS_PER_SECOND)

  return {
    channels: null,
    async stop(longestMs) {
      const boundMs = Math.min(STOP_BOUND_MS, longestMs)
      clearInterval(purging)
      audit.stop()
      await booking.stop(boundMs)
      await waitWithin(boundMs, Promise.all([jobs.stop(), copier.stop(), keeper.stop(), partitions.stop()]))
      await waitWithin(CLOSE_BOUND_MS, callLog.close())
    },
  }
}

const waitWithin = (boundMs: number, work: Promise<unknown>): Promise<unknown> =>
  Promise.race([work, new Promise((resolve) => setTimeout(resolve, boundMs).unref())])

const purgeExpired = async (database: Database): Promise<void> => {
  await database.idempotency.purge()
  await database.storedResponses.purgeStoredResponses()
  await database.storedResponses.purgeConversationCalls()
  await database.sessions.purge()
  await database.attempts.purge()
}
