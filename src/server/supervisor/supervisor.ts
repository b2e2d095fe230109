/**
 * `tollgate serve`: holds the data directory, starts the engines that are not configured, brings the schemas up to
 * date, forks the gateways, the settler and the task workers, and ends all of it in order.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Settings } from '../../../schemas/config/settings.ts'
import { DEMONSTRATION_FILE, needsSimulator } from '../../config/demonstration.ts'
import { loadConfigFile } from '../../config/load.ts'
import { findMisspelledSettings, localUrl, readSettings } from '../../config/settings.ts'
import { createCatalog } from '../../core/routing/catalog.ts'
import { describeTlsFailure } from '../../core/tls-failure.ts'
import { type DataDirLock, lockDataDir } from '../../embedded/data-dir.ts'
import type { EngineEvent, EngineName } from '../../embedded/engine.ts'
import { readServicePassword } from '../../embedded/postgres/postgres.ts'
import { registerPaymentWebhook } from '../../embedded/simulator.ts'
import { type EmbeddedEngines, startEmbedded } from '../../embedded/start.ts'
import { findTlsProblem } from '../../http/certificate.ts'
import type { TextServer } from '../../http/text-server.ts'
import { makePaymentSettings } from '../../payments/settings.ts'
import { completeRotation, readMasterKey } from '../../postgres/accounts/master-key.ts'
import { Refusal } from '../../postgres/billing/refusal.ts'
import { losesCommits } from '../../postgres/connection.ts'
import { listExcess, migrateAsOwner, migrateEmbedded } from '../../postgres/roles.ts'
import { printServers } from '../../postgres/servers/address.ts'
import { createLog, type LogOutput } from '../../telemetry/log.ts'
import { collectAtRest } from '../collect-at-rest.ts'
import { ConfigurationError, makeConfigEnvironment } from '../configuration.ts'
import type { Boot, ChildRole } from '../messages.ts'
import { logUncaughtExceptions } from '../uncaught-exceptions.ts'
import { VERSION } from '../version.ts'
import { type BannerFacts, findBannerModel, printBanner, printFactsJson } from './banner.ts'
import { ServiceChild } from './children.ts'
import { provideFirstAccess } from './first-access.ts'
import { MetricsGatherer } from './metrics-gatherer.ts'
import { type ChosenPort, choosePort } from './port.ts'
import { DRAIN_MS, readDrainMs } from './stop-bounds.ts'

const SECRET_BYTES = 32
/** Placeholder of the simulated provider's address before it runs. */
const ANY_SIMULATOR_URL = 'http://127.0.0.1:1'

interface ServeOptions {
  /** Print the address of the service as one JSON value instead of the banner. */
  readonly json?: boolean
}

/** Runs until a signal asks it to stop. Resolves with the exit code. */
export async function serve(
  env: NodeJS.ProcessEnv = process.env,
  { json = false }: ServeOptions = {},
): Promise<number> {
  const startedAt = performance.now()
  const settings = readSettings(env)
  const log = createLog({ level: settings.logLevel, fields: { role: 'supervisor' } })
  for (const misspelt of findMisspelledSettings(env))
    log.warn(misspelt, 'Unknown setting changes nothing; is it misspelt?')
  const lock = await lockDataDir(settings.dataDir)
  const service = new Service(settings, env, lock, log)
  const stopped = stopSignal(log, () => service.kill())
  try {
    // A signal during the start ends the race; what had started by then is stopped below.
    const started = service
      .start(startedAt)
      .then((facts) =>
        process.stdout.write((json ? printFactsJson : printBanner)(facts, process.stdout.isTTY)),
      )
    await Promise.race([started, stopped])
    logUncaughtExceptions(log)
    collectAtRest()
    await stopped
    return 0
  } finally {
    await service.stop()
    lock.release()
    log.info({}, 'Stopped')
    log.flush()
  }
}

/** Resolves at the first SIGINT or SIGTERM; a second one is impatient. */
function stopSignal(log: LogOutput, onImpatient: () => void): Promise<void> {
  return new Promise((resolve) => {
    let count = 0
    const onSignal = (signal: NodeJS.Signals) => {
      count++
      log.info(
        { signal },
        count === 1 ? 'Stopping: open streams may finish; a second signal cuts them' : 'Stopping at once',
      )
      if (count === 1) resolve()
      else onImpatient()
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  })
}

/**
 * Migrates and grants as the owner. Returns the URL for the service.
 * @throws Error that names the PostgreSQL server and what to check
 */
async function prepareDatabase(url: string, settings: Settings, log: LogOutput): Promise<string> {
  try {
    if (settings.databaseUrl === null)
      return await migrateEmbedded(url, readServicePassword(settings.dataDir))
    await migrateAsOwner(url, settings.databaseOwnerUrl)
    const excess = await listExcess(url)
    if (excess.length > 0)
      log.warn(
        { excess },
        'The role of DATABASE_URL may do more than the service needs. Set TOLLGATE_DATABASE_OWNER_URL, and another role in DATABASE_URL',
      )
    if (await losesCommits(settings.databasePoolUrl ?? url))
      log.warn(
        {},
        'DATABASE_URL names several servers, and PostgreSQL commits without waiting for a standby: a failover may lose booked calls. Set synchronous_standby_names there',
      )
    return url
  } catch (error) {
    if (error instanceof Refusal) throw error
    const { message, code } = error as Error & { code?: string }
    throw new Error(
      `PostgreSQL at ${printServers(url)} cannot be used: ${message || code}. ${describeTlsFailure('PostgreSQL', error) ?? 'Is it up, and is DATABASE_URL right?'}`,
      { cause: error },
    )
  }
}

class Service {
  readonly #settings: Settings
  readonly #env: NodeJS.ProcessEnv
  readonly #lock: DataDirLock
  readonly #log: LogOutput
  readonly #configPath: string
  /** Signs the webhooks of the simulated provider. */
  readonly #simulatedSecret = `whsec_${randomBytes(SECRET_BYTES).toString('hex')}`
  #engines: EmbeddedEngines | null = null
  #hasStarted = false
  #gateways: ServiceChild[] = []
  /** In the order in which they stop. */
  #workers: ServiceChild[] = []
  #gatherer: MetricsGatherer | null = null
  #adminListener: TextServer | null = null
  #starting: Promise<unknown> = Promise.resolve()
  readonly #stopping = new AbortController()

  constructor(settings: Settings, env: NodeJS.ProcessEnv, lock: DataDirLock, log: LogOutput) {
    this.#settings = settings
    this.#env = env
    this.#lock = lock
    this.#log = log
    this.#configPath = settings.configPath ?? DEMONSTRATION_FILE
  }

  start(startedAt: number): Promise<BannerFacts> {
    const starting = this.#start(startedAt)
    this.#starting = starting.catch(() => {})
    return starting
  }

  async #start(startedAt: number): Promise<BannerFacts> {
    const settings = this.#settings
    const { signal } = this.#stopping
    // Checked before anything is started: a broken file or a taken port costs no start.
    const wantsSimulator = needsSimulator(this.#loadConfig(ANY_SIMULATOR_URL).variables)
    this.#checkCertificate()
    await this.#choosePort()
    const embedded = this.#listEmbeddedEngines(wantsSimulator)
    // Their code loads while the engines start.
    const children = this.#loadChildren()
    const engines = await startEmbedded({
      dataDir: settings.dataDir,
      lockFd: this.#lock.fd,
      engines: embedded,
      gateways: settings.workers,
      onEvent: (event) => this.#onEngineEvent(event),
      signal,
    })
    this.#engines = engines
    // They take a while, the first time above all: the usual port may have been taken meanwhile.
    const { port, isAnother } = await this.#choosePort()
    const ownerBoot = await this.#boot(engines, port, await this.#chooseAdmin())
    const { config } = this.#loadConfig(engines.urls.simulatorUrl)
    const databaseUrl = await prepareDatabase(ownerBoot.databaseUrl, settings, this.#log)
    const boot = {
      ...ownerBoot,
      databaseUrl,
      natsReplicas: config.nats.replicas,
      clickhouseCluster: config.clickhouse.cluster,
    }
    signal.throwIfAborted()
    const [, first] = await Promise.all([
      Promise.all(children.map((child) => child.start(boot))),
      provideFirstAccess(settings, boot, config),
    ])
    const hasGateway = settings.roles.includes('gateway')
    if (boot.admin !== null && !hasGateway) {
      const { listenForOperators } = await import('./admin-listener.ts')
      const metricsText = () => this.#gatherer!.gatherText()
      this.#adminListener = await listenForOperators(boot.admin, {
        unreadiness: () => this.#unreadiness(),
        metricsText,
      })
    }
    const scheme = settings.tls === null ? 'http' : 'https'
    const baseUrl = hasGateway ? localUrl(settings.host, port, scheme) : null
    if (boot.hasSimulatedCards && baseUrl !== null)
      await registerPaymentWebhook(boot.simulatorUrl!, baseUrl, this.#simulatedSecret)
    const { signInToken, ...firstFacts } = first
    // By name: browsers take no passkeys at an address.
    const consoleBase = settings.publicUrl ?? baseUrl?.replace('//127.0.0.1:', '//localhost:')
    const consoleUrl = baseUrl === null || settings.console === null ? null : `${consoleBase}/console`
    const signInUrl = consoleUrl && signInToken && `${consoleUrl}/sign-in#link=${signInToken}`
    this.#lock.writeRunFile({
      base_url: baseUrl,
      sign_in_url: signInUrl,
      admin_url: boot.admin === null ? null : localUrl(boot.admin.host, boot.admin.port),
      first_key: first.key,
      database_url: boot.databaseUrl,
      nats_url: boot.natsUrl,
      clickhouse_url: boot.clickhouseUrl,
      simulator_url: boot.simulatorUrl,
      config_file: boot.configPath,
    })
    this.#lock.rememberConfig(settings.configPath)
    this.#hasStarted = true
    const catalog = createCatalog(config)
    const isServed = (id: string) => catalog.routes(catalog.resolve(id)!, 'chat-completions').length > 0
    return {
      version: VERSION,
      baseUrl,
      publicUrl: hasGateway ? settings.publicUrl : null,
      takenPort: isAnother ? settings.port : null,
      startMs: performance.now() - startedAt,
      ...firstFacts,
      consoleUrl,
      signInUrl,
      runFile: join(settings.dataDir, 'run.json'),
      model: findBannerModel(config.models, isServed),
      configPath: settings.configPath,
      dataDir: settings.dataDir,
      engines: embedded,
    }
  }

  #choosePort(): Promise<ChosenPort> {
    const { host, port, roles } = this.#settings
    if (!roles.includes('gateway')) return Promise.resolve({ port, isAnother: false })
    const isNamed = Boolean(this.#env.TOLLGATE_PORT)
    return choosePort({ host, port, isNamed, mayBeFreed: this.#lock.wasKilled })
  }

  #checkCertificate(): void {
    const { tls } = this.#settings
    const problem = tls === null ? null : findTlsProblem(tls)
    if (problem !== null) throw new Error(`TOLLGATE_TLS_CERT and TOLLGATE_TLS_KEY cannot be used: ${problem}`)
  }

  async #chooseAdmin(): Promise<Settings['admin']> {
    const { admin } = this.#settings
    if (admin === null) return null
    const wish = { ...admin, isNamed: true, mayBeFreed: this.#lock.wasKilled }
    const { port } = await choosePort({ ...wish, variables: 'TOLLGATE_ADMIN_HOST and TOLLGATE_ADMIN_PORT' })
    return { host: admin.host, port }
  }

  /** @throws ConfigurationError */
  #loadConfig(simulatorUrl: string | null) {
    const loaded = loadConfigFile(this.#configPath, makeConfigEnvironment(simulatorUrl))
    if (!loaded.ok) throw new ConfigurationError(loaded.problems)
    return loaded
  }

  #listEmbeddedEngines(wantsSimulator: boolean): EngineName[] {
    const { databaseUrl, natsUrl, clickhouseUrl } = this.#settings
    const engines: EngineName[] = []
    if (databaseUrl === null) engines.push('postgres')
    if (natsUrl === null) engines.push('nats')
    if (clickhouseUrl === null) engines.push('clickhouse')
    if (wantsSimulator) engines.push('simulator')
    return engines
  }

  async #boot(
    { urls }: EmbeddedEngines,
    port: number,
    admin: Settings['admin'],
  ): Promise<Omit<Boot, 'role' | 'index' | 'natsReplicas' | 'clickhouseCluster'>> {
    const settings = this.#settings
    const masterKey = settings.masterKey ?? (await this.#readSavedMasterKey(urls.databaseUrl))
    this.#log.hide([masterKey.toString('hex'), masterKey.toString('base64')])
    const simulatedCardsUrl = settings.configPath === null ? urls.simulatorUrl : null
    return {
      gatewayCount: settings.workers,
      host: settings.host,
      port,
      admin,
      tls: settings.tls,
      publicUrl:
        settings.publicUrl ?? localUrl(settings.host, port, settings.tls === null ? 'http' : 'https'),
      console: settings.console,
      dataDir: settings.dataDir,
      configPath: this.#configPath,
      databaseUrl: settings.databaseUrl ?? urls.databaseUrl!,
      databasePoolUrl: settings.databasePoolUrl,
      databaseReadUrl: settings.databaseReadUrl,
      natsUrl: settings.natsUrl ?? urls.natsUrl!,
      clickhouseUrl: settings.clickhouseUrl ?? urls.clickhouseUrl!,
      simulatorUrl: urls.simulatorUrl,
      objectStore: settings.objectStore,
      mail: settings.mail,
      payments: makePaymentSettings(settings.payments, simulatedCardsUrl, this.#simulatedSecret),
      hasSimulatedCards: settings.payments === null && simulatedCardsUrl !== null,
      masterKey: masterKey.toString('base64'),
      logLevel: settings.logLevel,
    }
  }

  async #readSavedMasterKey(embeddedUrl: string | null): Promise<Buffer> {
    if (embeddedUrl === null)
      throw new Error(
        'TOLLGATE_MASTER_KEY is required with a PostgreSQL of your own (DATABASE_URL): 32 bytes, hex or base64. Make one with: openssl rand -hex 32',
      )
    await completeRotation(this.#settings.dataDir, embeddedUrl)
    return readMasterKey(this.#settings.dataDir)
  }

  #loadChildren(): ServiceChild[] {
    const child = (role: ChildRole, index: number) =>
      new ServiceChild({
        role,
        index,
        lockFd: this.#lock.fd,
        log: this.#log,
        onMessage: (from, message) => this.#gatherer?.onMessage(from, message),
        onReady: (ready) => {
          this.#gatherer?.onReady(ready)
          this.#announceEngines([ready])
        },
      })
    const { roles, workers } = this.#settings
    const hasBoth = roles.includes('settler') && roles.includes('tasks')
    // One process takes less memory; beside several gateways each has enough work for a core.
    if (hasBoth && workers === 1) this.#workers = [child('settler+tasks', 0)]
    // The settler stops last: it copies into the call log what the other processes have booked.
    else
      this.#workers = (['tasks', 'settler'] as const)
        .filter((role) => roles.includes(role))
        .map((role) => child(role, 0))
    if (roles.includes('gateway'))
      this.#gateways = Array.from({ length: workers }, (_, index) => child('gateway', index))
    const children = [...this.#gateways, ...this.#workers]
    this.#gatherer = new MetricsGatherer(children, () => this.#engines?.readHealth() ?? {})
    for (const child of children) child.load()
    return children
  }

  #onEngineEvent(event: EngineEvent): void {
    const isBad = event.event === 'crashed' || event.event === 'restart-failed'
    const usual = this.#hasStarted ? 'info' : 'debug'
    this.#log[isBad ? 'error' : usual]({ ...event }, `Engine ${event.event}`)
    this.#announceEngines(this.#gateways)
  }

  #announceEngines(children: readonly ServiceChild[]): void {
    const health = this.#engines?.readHealth() ?? {}
    const engines = Object.fromEntries(Object.entries(health).map(([name, { state }]) => [name, state]))
    for (const child of children) if (child.isReady) child.send({ type: 'engines', engines })
  }

  /** Returns why a service without a gateway does not do its work; null while it does. */
  #unreadiness(): string | null {
    if (this.#stopping.signal.aborted) return 'Draining'
    const absent = this.#workers.find((child) => !child.isReady)
    if (absent) return `${absent.name} does not run`
    const down = Object.entries(this.#engines?.readHealth() ?? {}).flatMap(([name, { state }]) =>
      state === 'ready' ? [] : [name],
    )
    return down.length > 0 ? `no answer from ${down.join(', ')}` : null
  }

  /** Gateways first: what their last calls wait for, and their last settlements, need the others. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the service is being stopped'))
    const drainMs = readDrainMs(this.#configPath, this.#engines?.urls.simulatorUrl ?? null)
    await Promise.all(this.#gateways.map((gateway) => gateway.drain(drainMs)))
    for (const worker of this.#workers) await worker.drain(DRAIN_MS[worker.role])
    await this.#starting
    this.#adminListener?.close()
    await this.#engines?.stop()
  }

  /** Cuts open streams at once. */
  kill(): void {
    for (const gateway of this.#gateways) gateway.send({ type: 'drain', deadlineMs: 0 })
  }
}
