/** One gateway process: everything a call needs, wired together. */
import { from } from 'rxjs'
import { secretUses } from '../../../pipelines/accounts/secret-uses.ts'
import { errorReply } from '../../../pipelines/calls/errors.ts'
import { RefusalLog } from '../../../pipelines/calls/refusals.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import type { UpstreamCallRequest } from '../../../pipelines/chat/forward/attempt-request.ts'
import { ResponseNotes } from '../../../pipelines/chat/forward/response-notes.ts'
import { SilenceWatch } from '../../../pipelines/chat/forward/stream-answer.ts'
import { overviews } from '../../../pipelines/management/live/live.ts'
import { channelLists } from '../../../pipelines/media/channel-lists.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { openCallLog } from '../../clickhouse/call-log.ts'
import { editableConfiguration } from '../../config/edit.ts'
import { isLoopback } from '../../config/settings.ts'
import { readConsole } from '../../console/files.ts'
import { operatorAccess } from '../../core/keys/operator-access.ts'
import { AnswerMemory } from '../../core/limits/answer-memory.ts'
import { ChannelHealth } from '../../core/routing/circuit-breaker.ts'
import { OutputRates } from '../../core/routing/output-rates.ts'
import { RetryBudget } from '../../core/routing/retry-budget.ts'
import { UsageOptionRefusals } from '../../core/routing/usage-option-refusals.ts'
import { Credentials } from '../../credentials/credentials.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import { GatewayServer } from '../../http/server.ts'
import { openIdentity } from '../../identity/identity.ts'
import { openMcp } from '../../mcp/open.ts'
import { lazyProvider } from '../../payments/provider.ts'
import { printReceipt } from '../../payments/receipt.ts'
import { openDatabase } from '../../postgres/database.ts'
import { isAway } from '../../postgres/errors.ts'
import { storeOf } from '../../storage/open-store.ts'
import { CallTrace } from '../../telemetry/call-trace.ts'
import { createLog, type LogOutput } from '../../telemetry/log.ts'
import { createMetrics, observationOf } from '../../telemetry/metrics.ts'
import { startTracing } from '../../telemetry/tracing.ts'
import { UpstreamClient } from '../../upstream/client.ts'
import { observeUpstream } from '../../upstream/observe.ts'
import { openAuthorizers } from '../channels/authorizers.ts'
import { watchChannelHolds } from '../channels/holds.ts'
import { upstreamCalls } from '../channels/upstream-calls.ts'
import { configEnvironment, openConfiguration } from '../configuration.ts'
import { journalDeps } from '../journal-deps.ts'
import { type Boot, secretsOfBoot } from '../messages.ts'
import { ParentLink } from '../parent-link.ts'
import { processReports } from '../process-reports.ts'
import { reportProcess, showChannels } from '../report-process.ts'
import { openAdminRouter, openRouter, type RouteDeps } from '../routes/all.ts'
import { taskAdapterOf } from '../tasks/adapters.ts'
import { countEndedTask, countTransitions } from '../tasks/count-transitions.ts'
import { drainOnUncaughtException } from '../uncaught-exceptions.ts'
import { VERSION } from '../version.ts'
import { watchCertificate } from './certificate-watch.ts'
import { watchChanges } from './change-watch.ts'
import { linkChecker } from './check-links.ts'
import { clientLimits } from './client-limits.ts'
import { countSettled } from './count-settled.ts'
import { watchEngines } from './engine-watch.ts'
import { failedAuthentications } from './failed-authentications.ts'
import { fileFetcher } from './fetch-files.ts'
import { observeJournal, openGatewayJournal } from './journal.ts'
import { openGatewayLimiter } from './limiter.ts'
import { longRequests } from './long-requests.ts'
import { pageOrigins } from './page-origins.ts'
import { settledCalls } from './settled-calls.ts'
import { openGatewayTasks } from './tasks.ts'

const MAX_CONNECTIONS = 4
/** Time for the journal to be booked after a drain has settled the remaining streams as interrupted. */
const FLUSH_BOUND_MS = 10_000
/** Drain time of a process that is replaced after an uncaught exception. */
const BROKEN_DRAIN_MS = 30_000
/** A bucket bills each request. */
const BUCKET_PING_INTERVAL_MS = 10_000
const MS_PER_SECOND = 1000
const BYTES_PER_MIB = 1024 * 1024

/** Serves calls until the parent asks for a drain. `openJournal` decides where settlements go. */
export async function runGateway(boot: Boot, openJournal = openGatewayJournal): Promise<void> {
  const log = createLog({ level: boot.logLevel, fields: { role: boot.role, index: boot.index } })
  log.hide(secretsOfBoot(boot))
  const metrics = createMetrics(VERSION, { hasStreams: true })
  const tracer = await startTracing(process.env, VERSION, (problem) =>
    log.warn({ problem }, 'Failed to export traces'),
  )
  const configuration = openConfiguration(boot.configPath, boot.simulatorUrl, log)
  const opened = await openDatabase({
    url: boot.databaseUrl,
    poolUrl: boot.databasePoolUrl,
    readUrl: boot.databaseReadUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    maxConnections: MAX_CONNECTIONS,
    name: `tollgate gateway ${boot.index}`,
  })
  const database = { ...opened, tasks: countTransitions(opened.tasks, countEndedTask(metrics, log)) }
  if (database.masterKey.replacedAt !== null)
    log.warn(
      { replaced_at: database.masterKey.replacedAt },
      'This master key was replaced: calls are served, and no key can be created or revealed. Restart with the new TOLLGATE_MASTER_KEY',
    )
  const callLog = openCallLog(boot.clickhouseUrl, boot.clickhouseCluster)
  const files = await storeOf({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const limiter = openGatewayLimiter(boot, log)
  const journal = await openJournal({
    boot,
    database,
    isStoredFirst: () => configuration.current().config.settlement.durability === 'cluster',
    log,
  })
  const failed = (message: string) => (error: unknown) => log.error({ err: error }, message)
  const credentials = new Credentials({
    database,
    graceMs: () => configuration.current().config.database.grace_seconds * MS_PER_SECOND,
    recoveredCost: journal.recoveredCost,
    isAway,
    onFault: failed('Failed to read wallet totals; balances here follow notifications alone'),
  })
  journal.start(credentials)
  const changes = watchChanges(database.changes, credentials, log)
  const engines = watchEngines(
    [
      {
        title: 'PostgreSQL',
        name: 'postgres',
        ping: () => database.ping(),
        onPinged: (isUp) => (isUp ? credentials.onDatabaseFound() : credentials.onDatabaseLost()),
      },
      { title: 'NATS', name: 'nats', ping: () => journal.pingNats() },
      { title: 'ClickHouse', name: 'clickhouse', ping: () => callLog.ping() },
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
  const parent = new ParentLink()
  const health = new ChannelHealth()
  const stopHolds = await watchChannelHolds({ database, configuration, health, log })
  const usageOptionRefusals = new UsageOptionRefusals(({ channel, upstreamModel }) =>
    log.warn(
      { channel: channel.id, upstream_model: upstreamModel },
      'Upstream refuses stream_options: for ten minutes its streams are called without it, and billed by estimate where it reports no usage',
    ),
  )
  const upstream = new UpstreamClient({
    onHandlerError: (error) => log.error({ err: error }, 'Handler of an upstream answer threw'),
  })
  const authorizerOf = openAuthorizers(log)
  const callUpstream = upstreamCalls(upstream, authorizerOf)
  const keyed = <C extends UpstreamCallRequest>(call: C): C => ({
    ...call,
    channel: health.keys.pick(call.channel),
  })
  const tasks = openGatewayTasks({ boot, database, credentials, store: files, upstream, authorizerOf, log })
  const channels = { health, catalog: configuration.current }
  showChannels(metrics, channels)
  reportProcess({ process: `gateway ${boot.index}`, nats: tasks.nats, metrics, channels })
  const published = {
    settledCalls: settledCalls(tasks.nats),
    processReports: () => processReports(tasks.nats),
  }
  const lateUsage = new LateUsage()
  const responseNotes = new ResponseNotes({ responses: database.storedResponses, log, pause: after })
  let isDraining = false
  const draining = Promise.withResolvers<void>()
  let embeddedDown: string[] = []
  const callRefusal = () => (isDraining ? 'Draining' : (journal.unreadiness() ?? credentials.unreadiness()))
  const unreadiness = () => {
    const asked = engines.down()
    const down = asked.length > 0 ? asked : embeddedDown
    return !isDraining && down.length > 0 ? `no answer from ${down.join(', ')}` : callRefusal()
  }
  const refusals = new RefusalLog({
    write: (settlement) => journal.journal.settle(null, settlement),
    areShared: () => configuration.current().config.logs.share_refusals,
    isModel: (name) => configuration.current().resolve(name) !== null,
    later: (work, ms) => void setTimeout(work, ms).unref(),
    now: Date.now,
  })
  const clients = clientLimits({
    config: () => configuration.current().config,
    gatewayCount: boot.gatewayCount,
    count: metrics.clientRefused,
    log,
  })
  metrics.observe('tollgate_buffered_body_bytes', () => clients.bufferedBytes)
  const maxTextBytes = () => configuration.current().config.server.max_body_mib * BYTES_PER_MIB
  const refusedKey = failedAuthentications({ count: metrics.unauthenticated, log })
  const renderError = (path: string, requestId: string, client: () => string = () => '') =>
    errorReply(path, requestId, {
      onUnforeseen: (error, request_id) =>
        log.error({ err: error, request_id }, 'Call failed with an unexpected error'),
      onUnauthenticated: (message) => refusedKey(message, client),
      onInternal: (cause, code, request_id) => log.info({ cause, code, request_id }, 'Call failed'),
    })
  const operatorView = {
    unreadiness,
    callRefusal,
    metricsText: () => parent.metricsText(),
    operatorAccess: () => {
      const { metrics, profile } = configuration.current().config
      return operatorAccess({
        token: metrics.token,
        hasAdminListener: boot.admin !== null,
        isLoopback: isLoopback(boot.host),
        isPublicProfile: profile === 'public',
      })
    },
  }
  const checkReceiver = receiverChecker(() => configuration.current().config.webhooks.private_addresses)
  const long = longRequests(log)
  const deps: RouteDeps['calls'] & RouteDeps['tasks'] & RouteDeps['management'] & RouteDeps['webhook'] = {
    credentials,
    keys: database.keys,
    onSecretUsed: secretUses({ database, log }),
    catalog: configuration.current,
    installedAt: database.installedAt,
    limiter,
    journal: journal.journal,
    journalId: journal.journal.id,
    records: database.idempotency,
    answerMemory: new AnswerMemory(),
    onRecordLost: (error) =>
      log.warn({ err: error }, 'Failed to update an idempotency record; it expires by itself'),
    callUpstream,
    workOnLongBody: long.work,
    openCountTokens: (call) => observeUpstream((handler) => callUpstream(keyed(call), handler, call.adapter)),
    openUpstream: (call) => observeUpstream((handler) => callUpstream(keyed(call), handler)),
    ...published,
    overviews: overviews(published),
    configurationFile: editableConfiguration(boot.configPath, configEnvironment(boot.simulatorUrl)),
    isConfigurationRefused: configuration.isRefused,
    draining: from(draining.promise),
    retries: () => configuration.current().config.retries,
    retryBudget: new RetryBudget(),
    health,
    fetchFiles: fileFetcher(),
    checkLinks: linkChecker({ store: files }),
    checkReceiver,
    checkCallback: async ({ account, key }, url) => {
      await checkReceiver(url)
      await database.webhooks.makeCallbacks({ accountId: account.id, keyId: key.id })
    },
    hasMail: boot.mail !== null,
    ...responseNotes,
    findStoredConversation: database.storedResponses.findStoredConversation,
    conversations: database.storedResponses,
    driveTask: tasks.driver({ health, metrics: metrics.tasks, catalog: configuration.current }),
    usageOptionRefusals,
    silence: new SilenceWatch(),
    outputRates: new OutputRates(),
    lateUsage,
    onSettled: countSettled(metrics, log),
    onInFlight: (change) => metrics.inFlight(change),
    startTrace: tracer === null ? null : (traceparent) => new CallTrace(tracer, traceparent),
    onRefused: (settlement) => {
      refusals.record(settlement)
      // A refused call's model is the client's own text: only a name of the catalog becomes a label.
      const model = configuration.current().resolve(settlement.model)?.id ?? ''
      metrics.call(observationOf(settlement, model))
    },
    callLog,
    cursorKey: database.masterKey.logCursorKey,
    files,
    fileLinkKey: database.masterKey.fileLinkKey,
    caps: database.reservations,
    isAway,
    onReservationRefused: metrics.reservationRefused,
    onReservationFault: failed('Failed to change a reservation; it ends with its booking or expires'),
    tasks: database.tasks,
    database,
    objects: database.tasks,
    config: () => configuration.current().config,
    identity: openIdentity(),
    publicUrl: boot.publicUrl,
    openProvider: lazyProvider(boot.payments),
    journals: journalDeps(tasks.nats, log, () => [
      boot.dataDir,
      ...configuration.current().config.journals.import_roots,
    ]),
    hasSimulatedCards: boot.hasSimulatedCards,
    printReceipt,
    isSecure: boot.tls !== null || boot.publicUrl.startsWith('https:'),
    uploads: new Uploads({ files }),
    wiki: database.knowledge,
    openMcp: openMcp(VERSION),
    allowedOrigins: pageOrigins(boot.publicUrl, () => configuration.current().config),
    createTask: tasks.createTask,
    awaitTask: tasks.awaitTask,
    renderError,
    calls: tasks.calls,
    cancelUpstream: tasks.canceller(configuration.current),
    messages: tasks.messages,
    adapterOf: taskAdapterOf,
    lists: channelLists({ calls: tasks.calls }),
    log,
  }
  const router = openRouter({
    calls: deps,
    tasks: deps,
    management: deps,
    webhook: deps,
    probes: operatorView,
    console: boot.console && { host: boot.console.host, files: readConsole() },
  })
  const server = new GatewayServer({
    router,
    maxTextBytes,
    clients,
    renderError,
    tls: boot.tls,
  })
  const adminServer =
    boot.admin === null
      ? null
      : new GatewayServer({ router: openAdminRouter(operatorView), maxTextBytes, clients, renderError })
  observeJournal(metrics, journal)
  metrics.observe('tollgate_draining', () => Number(isDraining))
  metrics.observe('tollgate_reserved_credits', () => Number(credentials.inFlight) / Number(ONE_CREDIT))
  metrics.observe('tollgate_configuration_refused', () => Number(configuration.isRefused()))
  metrics.observe('tollgate_usage_option_refusals', () => usageOptionRefusals.count())

  const cut = Promise.withResolvers<void>()
  /**
   * Gives open streams until the deadline; then cuts them, settles them as interrupted, and books. Called again, the
   * earlier deadline applies.
   */
  const drain = async (deadlineMs: number, exitCode = 0) => {
    void after(deadlineMs).then(cut.resolve)
    if (isDraining) return
    isDraining = true
    draining.resolve()
    server.drain()
    log.info({ in_flight: server.inFlight, deadline_ms: deadlineMs }, 'Draining')
    await Promise.race([server.idle(), cut.promise])
    await end(exitCode)
  }
  const end = async (exitCode: number) => {
    lateUsage.close()
    server.close()
    refusals.flush()
    adminServer?.close()
    long.close()
    await Promise.race([Promise.all([journal.close(), responseNotes.close()]), after(FLUSH_BOUND_MS)])
    upstream.close()
    configuration.close()
    engines.close()
    await Promise.race([
      Promise.allSettled([
        limiter.close(),
        tasks.close(),
        changes.close(),
        stopHolds(),
        callLog.close(),
        tracer?.close(),
      ]),
      after(2000),
    ])
    await Promise.race([database.close(), after(2000)])
    await Promise.race([parent.sendLastSnapshot(metrics.snapshot()), after(2000)])
    log.info({}, 'Gateway ended')
    log.flush()
    process.exit(exitCode)
  }
  parent.listen({
    onDrain: (deadlineMs) => void drain(deadlineMs),
    onSnapshot: () => metrics.snapshot(),
    onEngines: (states) => {
      embeddedDown = Object.keys(states).filter((name) => states[name] !== 'ready')
    },
    onOrphaned: () =>
      orphaned(log, server, () => {
        lateUsage.close()
        refusals.flush()
        return journal.closeAtOnce()
      }),
  })
  drainOnUncaughtException(log, () => void drain(BROKEN_DRAIN_MS, 1))
  await Promise.all([journal.caughtUp(), limiter.joined()])
  await server.listen(boot.host, boot.port)
  if (boot.tls !== null) watchCertificate(boot.tls, server, log)
  if (boot.admin !== null) await adminServer?.listen(boot.admin.host, boot.admin.port)
  parent.send({ type: 'ready' })
}

/**
 * Ends the process after its supervisor was killed: cuts streams and settles them into the journal; the next start
 * books them.
 */
function orphaned(log: LogOutput, server: GatewayServer, closeJournal: () => Promise<void>): void {
  log.error({}, 'Supervisor is gone; ending')
  server.close()
  void Promise.race([closeJournal(), after(1000)]).finally(() => {
    log.flush()
    process.exit(1)
  })
}

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
