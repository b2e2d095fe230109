/** The settler process: settlements into PostgreSQL, booked rows into ClickHouse. */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { bindIntegrityJobs } from '../../../pipelines/jobs/integrity.ts'
import { runJobs } from '../../../pipelines/jobs/run-jobs.ts'
import { Settler } from '../../../pipelines/settlement/settler.ts'
import { openCallLog } from '../../clickhouse/call-log.ts'
import { openNats } from '../../nats/nats.ts'
import { openLazyProvider } from '../../payments/provider.ts'
import { type Database, openDatabase } from '../../postgres/database.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { type Boot, listBootSecrets } from '../messages.ts'
import { ParentLink } from '../parent-link.ts'
import { reportProcess } from '../report-process.ts'
import { exitOnUncaughtException } from '../uncaught-exceptions.ts'
import { VERSION } from '../version.ts'
import { scheduleDailyAudit } from './daily-audit.ts'
import { startLogMaintenance } from './log-retention.ts'
import { maintainPartitions } from './partitions.ts'

const MAX_CONNECTIONS = 3
/** Idempotency records outlive their seven days by this much at most. */
const PURGE_INTERVAL_MS = 60_000
const STOP_BOUND_MS = 5_000
const CLOSE_BOUND_MS = 2_000
/** Lines that are no settlement: kept beside the journals, for a person to read. */
const MALFORMED_FILE = 'malformed-settlements.ndjson'
const MS_PER_SECOND = 1000

export async function runSettler(boot: Boot): Promise<void> {
  const log = createLog({ level: boot.logLevel, fields: { role: boot.role } })
  log.hide(listBootSecrets(boot))
  const metrics = createMetrics(VERSION)
  const parent = new ParentLink()
  // Whatever it had not acknowledged comes again.
  exitOnUncaughtException(log, () => parent.sendLastSnapshot(metrics.snapshot()))
  const database = await openDatabase({
    url: boot.databaseUrl,
    poolUrl: boot.databasePoolUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    maxConnections: MAX_CONNECTIONS,
    name: 'tollgate settler',
  })
  const callLog = openCallLog(boot.clickhouseUrl, boot.clickhouseCluster)
  const nats = openNats({ url: boot.natsUrl, name: 'tollgate settler', log, replicas: boot.natsReplicas })
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
  reportProcess({ process: 'settler', nats, metrics, channels: null })

  let isEnding = false
  const end = async (boundMs: number) => {
    if (isEnding) return
    isEnding = true
    clearInterval(purging)
    audit.stop()
    await booking.stop(boundMs)
    await waitWithin(boundMs, Promise.all([jobs.stop(), copier.stop(), keeper.stop(), partitions.stop()]))
    await waitWithin(CLOSE_BOUND_MS, Promise.allSettled([nats.close(), callLog.close(), database.close()]))
    log.info({}, 'Settler ended')
    log.flush()
    process.exit(0)
  }
  parent.listen({
    onDrain: () => void end(STOP_BOUND_MS),
    onSnapshot: () => metrics.snapshot(),
    onEngines: () => {},
    onOrphaned: () => void end(CLOSE_BOUND_MS),
  })
  parent.send({ type: 'ready' })
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
