/** What a gateway process opens first: its tools, its engines, and what it knows of keys, wallets and settlements. */
import { LIMITS_SUBJECT } from '../../../schemas/accounts/limits.ts'
import { openCallLog } from '../../clickhouse/call-log.ts'
import { ulid } from '../../core/keys/ids.ts'
import { Credentials } from '../../credentials/credentials.ts'
import { Limiter } from '../../limits/limits.ts'
import { openMailbox } from '../../nats/mailbox.ts'
import { openDatabase } from '../../postgres/database.ts'
import { isAway } from '../../postgres/errors.ts'
import { openStore } from '../../storage/open-store.ts'
import { createLog, type Log } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { startTracing } from '../../telemetry/tracing.ts'
import { openConfiguration } from '../configuration.ts'
import { type Boot, listBootSecrets } from '../messages.ts'
import { countEndedTask, countTransitions } from '../tasks/count-transitions.ts'
import { VERSION } from '../version.ts'
import { watchChanges } from './change-watch.ts'
import { watchEngines } from './engine-watch.ts'
import type { openGatewayJournal } from './journal/journal.ts'

const MAX_CONNECTIONS = 4
/** No call waits for it, and each ping is work for an embedded one. */
const CLICKHOUSE_PING_INTERVAL_MS = 3_000
/** A bucket bills each request. */
const BUCKET_PING_INTERVAL_MS = 10_000
const MS_PER_SECOND = 1000

export type Tools = Awaited<ReturnType<typeof openTools>>
export type Engines = Awaited<ReturnType<typeof openEngines>>

/** Opens the log, the metrics, the traces and the configuration. */
export async function openTools(boot: Boot) {
  const log = createLog({ level: boot.logLevel, fields: { role: boot.role, index: boot.index } })
  log.hide(listBootSecrets(boot))
  const metrics = createMetrics(VERSION, { hasStreams: true })
  const tracer = await startTracing(process.env, VERSION, (problem) =>
    log.warn({ problem }, 'Failed to export traces'),
  )
  return { log, metrics, tracer, configuration: openConfiguration(boot.configPath, boot.simulatorUrl, log) }
}

export async function openEngines(boot: Boot, tools: Tools, openJournal: typeof openGatewayJournal) {
  const { log, metrics, configuration } = tools
  const database = await openGatewayDatabase(boot, tools)
  const callLog = openCallLog(boot.clickhouseUrl, boot.clickhouseCluster)
  const files = await openStore({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const limiter = openLimiter(boot, log)
  const journal = await openJournal({
    boot,
    database,
    isStoredFirst: () => configuration.current().config.settlement.durability === 'cluster',
    log,
  })
  const credentials = new Credentials({
    database,
    graceMs: () => configuration.current().config.database.grace_seconds * MS_PER_SECOND,
    recoveredCost: journal.recoveredCost,
    isAway,
    onFault: (error) =>
      log.error({ err: error }, 'Failed to read wallet totals; balances here follow notifications alone'),
  })
  journal.start(credentials)
  const changes = watchChanges(database.changes, credentials, log)
  const engineWatch = watchEngines(
    [
      {
        title: 'PostgreSQL',
        name: 'postgres',
        ping: () => database.ping(),
        onPinged: (isUp) => (isUp ? credentials.onDatabaseFound() : credentials.onDatabaseLost()),
      },
      { title: 'NATS', name: 'nats', ping: () => journal.pingNats() },
      {
        title: 'ClickHouse',
        name: 'clickhouse',
        ping: () => callLog.ping(),
        intervalMs: CLICKHOUSE_PING_INTERVAL_MS,
      },
      {
        title: 'the object store',
        name: 'files',
        ping: () => files.ping(),
        ...(files.servesLinks && { intervalMs: BUCKET_PING_INTERVAL_MS }),
      },
    ],
    metrics,
    log,
  )
  return { database, callLog, files, limiter, journal, credentials, changes, engineWatch }
}

async function openGatewayDatabase(boot: Boot, { metrics, log }: Tools) {
  const database = await openDatabase({
    url: boot.databaseUrl,
    poolUrl: boot.databasePoolUrl,
    readUrl: boot.databaseReadUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    maxConnections: MAX_CONNECTIONS,
    name: `tollgate gateway ${boot.index}`,
  })
  if (database.masterKey.replacedAt !== null)
    log.warn(
      { replaced_at: database.masterKey.replacedAt },
      'This master key was replaced: calls are served, and no key can be created or revealed. Restart with the new TOLLGATE_MASTER_KEY',
    )
  return { ...database, tasks: countTransitions(database.tasks, countEndedTask(metrics, log)) }
}

/** Opens the process's share in the limits that hold across all gateways. */
function openLimiter({ natsUrl, index }: Boot, log: Log): Limiter {
  const self = ulid()
  // The settlement publisher already logs whether NATS is reachable.
  const quiet = { info: log.debug, warn: log.debug, error: log.debug }
  const name = `tollgate gateway ${index} limits`
  return new Limiter({
    self,
    log,
    now: () => performance.now(),
    openMailbox: (handlers) =>
      openMailbox({ url: natsUrl, name, log: quiet, group: LIMITS_SUBJECT, address: self }, handlers),
  })
}
