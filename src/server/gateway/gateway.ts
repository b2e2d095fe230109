/** One gateway process: everything a call needs, wired together. */
import { hostname } from 'node:os'
import { from } from 'rxjs'
import { openFreshPages } from '../../../pipelines/call-log/fresh-pages.ts'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { RefusalLog } from '../../../pipelines/calls/refusals.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { ResponseNotes } from '../../../pipelines/chat/forward/response-notes.ts'
import { watchOverviews } from '../../../pipelines/management/live/live.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { AUTH_MESSAGES } from '../../../schemas/failure.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { CallLog, CallPages } from '../../clickhouse/call-log.ts'
import { openConfiguration } from '../../config/edit.ts'
import { CONFIGURATION_EDITOR } from '../../config/entries.ts'
import { readConsole } from '../../console/files.ts'
import { addressPrefix } from '../../core/keys/address-prefix.ts'
import { stillHolds } from '../../core/still-holds.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import { GatewayServer } from '../../http/server.ts'
import { openIdentity } from '../../identity/identity.ts'
import { openMcp } from '../../mcp/open.ts'
import { openLazyProvider } from '../../payments/provider.ts'
import { isAway } from '../../postgres/errors.ts'
import { toObservation } from '../../telemetry/metrics.ts'
import { observeUpstream } from '../../upstream/observe.ts'
import { makeConfigEnvironment } from '../configuration.ts'
import { journalServices } from '../journal-services.ts'
import type { Boot } from '../messages.ts'
import { ParentLink } from '../parent-link.ts'
import { openAdminRouter, openRouter } from '../routes/all.ts'
import type { ManagementServices } from '../routes/management.ts'
import { findTaskAdapter } from '../tasks/adapters.ts'
import { drainOnUncaughtException } from '../uncaught-exceptions.ts'
import { VERSION } from '../version.ts'
import { callGroups } from './call-groups.ts'
import { watchCertificate } from './certificate-watch.ts'
import { openClientLimits } from './client-limits.ts'
import { type Engines, openEngines, openTools, type Tools } from './engines.ts'
import { observeJournal, openGatewayJournal } from './journal/journal.ts'
import { openLongRequests } from './long-requests.ts'
import { createOperatorView, GatewayStatus } from './status.ts'
import { openUpstreams, type Upstreams } from './upstreams.ts'

/** Time for the journal to be booked after a drain has settled the remaining streams as interrupted. */
const FLUSH_BOUND_MS = 10_000
/** Each step of an end waits no longer. */
const CLOSE_BOUND_MS = 2_000
/** Drain time of a process that is replaced after an uncaught exception. */
const BROKEN_DRAIN_MS = 30_000
const BYTES_PER_MIB = 1024 * 1024

/** Serves calls until the parent asks for a drain. `openJournal` decides where settlements go. */
export async function runGateway(boot: Boot, openJournal = openGatewayJournal): Promise<void> {
  const tools = await openTools(boot)
  const engines = await openEngines(boot, tools, openJournal)
  const upstreams = await openUpstreams(boot, tools, engines)
  const status = new GatewayStatus(engines)
  const parent = new ParentLink()
  const parts = {
    ...{ boot, status, parent, tools, engines, upstreams },
    calls: openCalls(boot, tools, engines),
  }
  observeGateway(parts)
  await new Gateway({ ...parts, ...createServers(parts) }).serve()
}

type Calls = ReturnType<typeof openCalls>

interface Parts {
  readonly boot: Boot
  readonly status: GatewayStatus
  readonly parent: ParentLink
  readonly tools: Tools
  readonly engines: Engines
  readonly upstreams: Upstreams
  readonly calls: Calls
}

/** Opens what calls of all kinds share: notes that are written later, limits by address, and errors. */
function openCalls(
  boot: Boot,
  { log, metrics, configuration }: Tools,
  { database, files, journal }: Engines,
) {
  const refusals = new RefusalLog({
    write: (settlement) => journal.journal.settle(null, settlement),
    areShared: () => configuration.current().config.logs.share_refusals,
    isModel: (name) => configuration.current().resolve(name) !== null,
    later: (work, ms) => void setTimeout(work, ms).unref(),
    now: Date.now,
  })
  const clients = openClientLimits({
    config: () => configuration.current().config,
    gatewayCount: boot.gatewayCount,
    count: metrics.clientRefused,
    log,
  })
  const refusedKey = failedAuthentications({ count: metrics.unauthenticated, log })
  return {
    refusals,
    clients,
    lateUsage: new LateUsage(),
    responseNotes: new ResponseNotes({ responses: database.storedResponses, log, pause: wait }),
    onRefused(settlement: Settlement) {
      refusals.record(settlement)
      // A refused call's model is the client's own text: only a name of the catalog becomes a label.
      const model = configuration.current().resolve(settlement.model)?.id ?? ''
      metrics.call(toObservation(settlement, model))
    },
    uploads: new Uploads({ files }),
    long: openLongRequests(log),
    // In a separate thread: only that one holds the tokenizer, and a long prompt delays no call.
    counting: openLongRequests(log, 1),
    checkReceiver: receiverChecker(() => configuration.current().config.webhooks.private_addresses),
    maxTextBytes: () => configuration.current().config.server.max_body_mib * BYTES_PER_MIB,
    renderError: (path: string, requestId: string, client: () => string = () => '') =>
      makeErrorReply(path, requestId, {
        onUnforeseen: (error, request_id) =>
          log.error({ err: error, request_id }, 'Call failed with an unexpected error'),
        onUnauthenticated: (message) => refusedKey(message, client),
        onInternal: (cause, code, request_id) => log.info({ cause, code, request_id }, 'Call failed'),
      }),
  }
}

/** However many keys are refused, the log has at most one line in this time. */
export const LOG_INTERVAL_MS = 10_000

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries(AUTH_MESSAGES).map(([reason, message]) => [message, reason]),
)

interface FailedAuthenticationDeps {
  readonly count: (reason: string) => void
  readonly log: { warn(details: object, message: string): void }
  readonly now?: () => number
}

/**
 * Counts each refused key by its reason, and logs from time to time which addresses they come from. Returns a function to
 * call with the public message of a refusal and a getter of its client's address. It never throws.
 */
export function failedAuthentications({ count, log, now = Date.now }: FailedAuthenticationDeps) {
  let quietUntil = 0
  let refused = 0
  return (message: string, peer: () => string): void => {
    const reason = REASONS.get(message) ?? 'other'
    count(reason)
    refused++
    if (stillHolds(quietUntil, now(), LOG_INTERVAL_MS)) return
    log.warn({ reason, address_prefix: addressPrefix(peer()), refused }, 'Refused API keys')
    quietUntil = now() + LOG_INTERVAL_MS
    refused = 0
  }
}

function observeGateway({ tools, engines, status, calls }: Parts): void {
  const { metrics, configuration } = tools
  const { credentials, journal } = engines
  observeJournal(metrics, journal)
  metrics.observe('tollgate_buffered_body_bytes', () => calls.clients.bufferedBytes)
  metrics.observe('tollgate_draining', () => Number(status.isDraining))
  metrics.observe('tollgate_reserved_credits', () => Number(credentials.inFlight) / Number(ONE_CREDIT))
  metrics.observe('tollgate_configuration_refused', () => Number(configuration.isRefused()))
}

/** Makes the servers of clients and of operators. */
function createServers(parts: Parts) {
  const { maxTextBytes, clients, renderError } = parts.calls
  const operatorView = createOperatorView(parts)
  const adminServer =
    parts.boot.admin === null
      ? null
      : new GatewayServer({ router: openAdminRouter(operatorView), maxTextBytes, clients, renderError })
  return { server: createServer(parts, operatorView), adminServer }
}

function createServer(parts: Parts, operatorView: ReturnType<typeof createOperatorView>): GatewayServer {
  const { boot, tools, engines, calls } = parts
  const { database, files } = engines
  const callLog = { ...engines.callLog, ...openPages(engines) }
  const { clients, maxTextBytes, renderError } = calls
  const management = managementServices(parts, callLog)
  const router = openRouter({
    groups: callGroups(parts),
    models: { catalog: tools.configuration.current, installedAt: database.installedAt },
    spending: { callLog, keys: database.keys },
    log: {
      callLog,
      tasks: database.tasks,
      wallets: database.wallets,
      cursorKey: database.masterKey.logCursorKey,
    },
    wiki: {
      wiki: database.knowledge,
      files,
      openMcp: openMcp(VERSION),
      allowedOrigins: pageOrigins(boot.publicUrl, () => tools.configuration.current().config),
    },
    files: { files, fileLinkKey: database.masterKey.fileLinkKey },
    management,
    webhook: { database, openProvider: management.payments.openProvider, log: tools.log },
    probes: operatorView,
    status: { callLog, statusNotes: database.statusNotes, catalog: tools.configuration.current },
    console: boot.console && { host: boot.console.host, files: readConsole() },
  })
  return new GatewayServer({ router, maxTextBytes, clients, renderError, tls: boot.tls })
}

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/** Returns the origins that browsers have for the service's own address: this machine has several names. */
function ownOrigins(publicUrl: string): readonly string[] {
  const { protocol, hostname, port, origin } = new URL(publicUrl)
  if (!LOOPBACK_HOSTS.includes(hostname)) return [origin]
  return LOOPBACK_HOSTS.map((host) => `${protocol}//${host}${port === '' ? '' : `:${port}`}`)
}

/** Returns the origins of the web pages that may call `/mcp`. */
export function pageOrigins(publicUrl: string, config: () => ConfigFile): () => readonly string[] {
  const own = ownOrigins(publicUrl)
  return () => [...own, ...config().mcp.allowed_origins]
}

/** Opens the pages of the call log, with what has just ended. */
const openPages = ({ callLog, database, journal, limiter }: Engines): CallPages =>
  openFreshPages({ callLog, database, bookEnded: () => journal.bookEnded(limiter.processCount), isAway })

function managementServices(
  { boot, status, tools, engines, upstreams, calls }: Parts,
  callLog: CallLog,
): ManagementServices {
  const { log, configuration } = tools
  const { database, files, limiter } = engines
  const { callUpstream, keyed, published, tasks } = upstreams
  const catalog = configuration.current
  const config = () => catalog().config
  const { publicUrl } = boot
  return {
    access: { database, isSecure: boot.tls !== null || publicUrl.startsWith('https:') },
    people: { config, publicUrl, hasMail: boot.mail !== null, identity: openIdentity() },
    accounts: { config },
    payments: {
      config,
      openProvider: openLazyProvider(boot.payments),
      hasSimulatedCards: boot.hasSimulatedCards,
      publicUrl,
      log,
    },
    calls: { callLog, cursorKey: database.masterKey.logCursorKey },
    tasks: {
      upstreams: { calls: tasks.calls, findAdapter: findTaskAdapter, catalog },
      cancelUpstream: tasks.canceller(catalog),
      messages: tasks.messages,
      files,
      log,
    },
    imports: { files, uploads: calls.uploads },
    webhooks: { checkReceiver: calls.checkReceiver },
    channels: {
      catalog,
      processReports: published.processReports,
      openUpstream: (call) => observeUpstream((handler) => callUpstream(keyed(call), handler)),
      callLog,
      config,
    },
    configuration: {
      file: openConfiguration(boot.configPath, makeConfigEnvironment(boot.simulatorUrl)),
      isRefused: configuration.isRefused,
      edit: CONFIGURATION_EDITOR,
      host: hostname(),
      processReports: published.processReports,
    },
    journals: journalServices(tasks.nats, log, () => [boot.dataDir, ...config().journals.import_roots]),
    live: { ...published, overviews: watchOverviews(published) },
    streams: { limiter, draining: from(status.draining) },
  }
}

type GatewayParts = Parts & ReturnType<typeof createServers>

class Gateway {
  readonly #parts: GatewayParts
  readonly #cut = Promise.withResolvers<void>()

  constructor(parts: GatewayParts) {
    this.#parts = parts
    parts.tools.metrics.observe('tollgate_web_sockets', () => parts.server.socketCount)
  }

  /** Listens, and tells the parent that it takes calls. */
  async serve(): Promise<void> {
    const { boot, parent, status, tools, engines, server, adminServer } = this.#parts
    parent.listen({
      onDrain: (deadlineMs) => void this.drain(deadlineMs),
      onSnapshot: () => tools.metrics.snapshot(),
      onEngines: (states) => status.setEmbedded(states),
      onOrphaned: () => this.#endOrphaned(),
    })
    drainOnUncaughtException(tools.log, () => void this.drain(BROKEN_DRAIN_MS, 1))
    await Promise.all([engines.journal.awaitCaughtUp(), engines.limiter.waitUntilJoined()])
    await server.listen(boot.host, boot.port)
    if (boot.tls !== null) watchCertificate(boot.tls, server, tools.log)
    if (boot.admin !== null) await adminServer?.listen(boot.admin.host, boot.admin.port)
    parent.send({ type: 'ready' })
  }

  /**
   * Gives open streams until the deadline; then cuts them, settles them as interrupted, and books. Called again, the
   * earlier deadline applies.
   */
  async drain(deadlineMs: number, exitCode = 0): Promise<void> {
    const { status, server, tools } = this.#parts
    void wait(deadlineMs).then(this.#cut.resolve)
    if (status.isDraining) return
    status.drain()
    server.drain()
    tools.log.info({ in_flight: server.inFlight, deadline_ms: deadlineMs }, 'Draining')
    await Promise.race([server.waitUntilIdle(), this.#cut.promise])
    await this.#close()
    process.exit(exitCode)
  }

  async #close(): Promise<void> {
    const { parent, tools, engines, upstreams, calls, server, adminServer } = this.#parts
    calls.lateUsage.close()
    server.close()
    calls.refusals.flush()
    adminServer?.close()
    calls.long.close()
    calls.counting.close()
    await Promise.race([
      Promise.all([engines.journal.close(), calls.responseNotes.close()]),
      wait(FLUSH_BOUND_MS),
    ])
    upstreams.upstream.close()
    tools.configuration.close()
    engines.engineWatch.close()
    await Promise.race([
      Promise.allSettled([
        engines.limiter.close(),
        upstreams.tasks.close(),
        engines.changes.close(),
        upstreams.stopHolds(),
        engines.callLog.close(),
        tools.tracer?.close(),
      ]),
      wait(CLOSE_BOUND_MS),
    ])
    await Promise.race([engines.database.close(), wait(CLOSE_BOUND_MS)])
    await Promise.race([parent.sendLastSnapshot(tools.metrics.snapshot()), wait(CLOSE_BOUND_MS)])
    tools.log.info({}, 'Gateway ended')
    tools.log.flush()
  }

  /**
   * Ends the process after its supervisor was killed: cuts streams and settles them into the journal; the next start
   * books them.
   */
  #endOrphaned(): void {
    const { tools, engines, calls, server } = this.#parts
    tools.log.error({}, 'Supervisor is gone; ending')
    server.close()
    calls.lateUsage.close()
    calls.refusals.flush()
    void Promise.race([engines.journal.closeAtOnce(), wait(1000)]).finally(() => {
      tools.log.flush()
      process.exit(1)
    })
  }
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
