/** The command line on the real engines. Loads only the modules that a command needs. */
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { RebuildProgress } from '../../pipelines/call-log/rebuild.ts'
import type { UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import { CHANNEL_REPORT_SUBJECT } from '../../schemas/config/channel-report.ts'
import type { Settings } from '../../schemas/config/settings.ts'
import { DEMONSTRATION_FILE, needsSimulator, SIMULATOR_URL_VARIABLE } from '../config/demonstration.ts'
import { loadConfigFile } from '../config/load.ts'
import { localUrl, readSettings } from '../config/settings.ts'
import { createCatalog } from '../core/routing/catalog.ts'
import { readRunning } from '../embedded/data-dir.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import { readReports } from '../server/process-reports.ts'
import { FileProblems, findConfigFile, requireConfig, UnknownConfig } from './config/config.ts'
import { askOnTerminal } from './confirm.ts'
import type { EngineUrls, Needed } from './engines.ts'
import type { Wiring } from './wiring.ts'

/** Placeholder of the simulated provider's address where none runs and only the file is read. */
const ANY_SIMULATOR_URL = 'http://127.0.0.1:9'
const MAX_CONNECTIONS = 2
/** A machine under load takes seconds to connect. */
const CONNECT_BOUND_MS = 10_000
const SURVEY_BOUND_MS = 2_000
const CLIENT_NAME = 'tollgate command'
/** Without a running process no message is needed: each reads the rows when it starts. */
const NO_MESSAGES = { publish() {}, announce() {}, announceWallets() {} }
const JSON_FLAG = '--json'
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** @returns the exit code */
export async function main(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  // A reader such as `head` may close the pipe before the end.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const wiring = new RealWiring(env)
  const [command, ...words] = argv
  if (command === 'serve' && words.every((word) => word === JSON_FLAG))
    return serveAlone(wiring, { json: words.length > 0 })
  const { run } = await import('./program.ts')
  return run(argv, wiring)
}

/** Runs the service without the other commands, which would stay in its memory. */
async function serveAlone(wiring: RealWiring, options: { readonly json: boolean }): Promise<number> {
  try {
    return await wiring.serve(options)
  } catch (error) {
    const { EXIT_FAILED, printError } = await import('./program.ts')
    process.stderr.write(`error: ${printError(error)}\n`)
    return EXIT_FAILED
  }
}

export class RealWiring implements Wiring {
  readonly env: NodeJS.ProcessEnv
  /** By the method that opened it. */
  readonly #opened = new Map<string, Promise<unknown>>()
  readonly #closers: (() => unknown)[] = []

  readonly ask = askOnTerminal
  readonly untilStopped = untilStopped

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env
  }

  async serve(options: { readonly json: boolean }) {
    const { serve } = await import('../server/supervisor/supervisor.ts')
    return serve(this.env, options)
  }

  settings = () => readSettings(this.env)

  database() {
    return this.#once('database', async () => this.#connect(await this.#engines(['postgres'])))
  }

  books() {
    return this.#once('books', async () => {
      const { openCallLog } = await import('../clickhouse/call-log.ts')
      const urls = await this.#engines(['postgres', 'clickhouse'])
      const database = await this.#connect(urls)
      const callLog = openCallLog(urls.clickhouseUrl!, this.#clickhouseCluster())
      this.#closers.push(() => callLog.close())
      return { database, callLog }
    })
  }

  store() {
    return this.#once('store', async () => {
      const { openStore } = await import('../storage/open-store.ts')
      const { fileLinkKey } = (await this.database()).masterKey
      return openStore({ ...this.settings(), publicUrl: this.publicUrl(), fileLinkKey })
    })
  }

  nats() {
    return this.#once('nats', async () => {
      const url = natsUrl(this.settings())
      if (url === null) return null
      const { openNats } = await import('../nats/nats.ts')
      const nats = openNats({ url, name: CLIENT_NAME, log: silent })
      this.#closers.push(() => nats.close())
      await nats.awaitConnection(CONNECT_BOUND_MS)
      return nats
    })
  }

  upstreams() {
    return this.#once('upstreams', async () => {
      const { openCalls } = await import('./upstream-calls.ts')
      const calls = openCalls()
      this.#closers.push(calls.close)
      return calls
    })
  }

  async tasks() {
    const { taskMessages } = await import('../../pipelines/tasks/worker/messages.ts')
    const nats = await this.nats()
    return {
      messages: nats === null ? NO_MESSAGES : taskMessages(nats, silent),
      // As the gateway does, with the channels of the service's configuration.
      cancelUpstream: async (task: Task) => {
        const [{ cancelUpstream }, { findTaskAdapter }] = await Promise.all([
          import('../../pipelines/tasks/end/cancel-upstream.ts'),
          import('../server/tasks/adapters.ts'),
        ])
        const catalog = createCatalog(requireConfig(this))
        const { media: calls } = await this.upstreams()
        await cancelUpstream({ calls, findAdapter: findTaskAdapter, catalog: () => catalog }, task)
      },
    }
  }

  /** In reverse order, whatever fails. */
  async close(): Promise<void> {
    this.#opened.clear()
    const close = this.#closers.pop()
    if (close === undefined) return
    try {
      await close()
    } finally {
      await this.close()
    }
  }

  async withServiceDatabase<T>(work: (database: Database) => Promise<T>): Promise<T | null> {
    const { findEngines } = await import('./engines.ts')
    const urls = await findEngines(this.settings(), ['postgres'])
    if (urls === null) return null
    const database = await openDatabaseAt(urls, this.settings())
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }

  async rebuildLog(
    onProgress: (progress: RebuildProgress) => void,
    confirmDeletion?: (unbooked: UnbookedSum) => Promise<void>,
  ) {
    const { rebuildLog } = await import('../../pipelines/call-log/rebuild.ts')
    return rebuildLog({ ...(await this.books()), onProgress, ...(confirmDeletion && { confirmDeletion }) })
  }

  loadConfig({ file, parts }: Parameters<Wiring['loadConfig']>[0] = {}) {
    const path = file === undefined ? findConfigFile(this.env) : resolve(file)
    const simulatorUrl = readRunning(this.settings().dataDir)?.simulator_url ?? ANY_SIMULATOR_URL
    const loaded = loadConfigFile(path, this.#withSimulator(simulatorUrl), parts)
    return loaded.ok
      ? { file: path, config: loaded.config, problems: [], warnings: loaded.warnings }
      : { file: path, config: null, problems: loaded.problems, warnings: [] }
  }

  async channels() {
    const load = (simulatorUrl: string) => {
      const loaded = loadConfigFile(findConfigFile(this.env), this.#withSimulator(simulatorUrl))
      if (!loaded.ok) throw new FileProblems('The configuration', loaded.problems)
      return loaded
    }
    const { variables, config } = load(ANY_SIMULATOR_URL)
    if (!needsSimulator(variables) || this.env[SIMULATOR_URL_VARIABLE]) return config.channels
    const { simulatorUrl } = await this.#engines(['simulator'])
    return load(simulatorUrl ?? ANY_SIMULATOR_URL).config.channels
  }

  async processReports() {
    const url = natsUrl(this.settings())
    if (url === null) return null
    const { survey } = await import('../nats/survey.ts')
    const question = { subject: CHANNEL_REPORT_SUBJECT, boundMs: SURVEY_BOUND_MS }
    return readReports(await survey({ url, name: CLIENT_NAME, log: silent, ...question }))
  }

  /** Webhooks come to the gateways: a command needs no secret for them. */
  async openProvider() {
    const [{ openLazyProvider }, { makePaymentSettings }] = await Promise.all([
      import('../payments/provider.ts'),
      import('../payments/settings.ts'),
    ])
    const { payments, dataDir } = this.settings()
    const running = readRunning(dataDir)
    const isDemonstration = running?.config_file === DEMONSTRATION_FILE
    return openLazyProvider(makePaymentSettings(payments, isDemonstration ? running.simulator_url : null, ''))
  }

  actor = nameOperator

  publicUrl() {
    const { publicUrl, dataDir, host, port, tls } = this.settings()
    if (publicUrl !== null) return publicUrl
    return readRunning(dataDir)?.base_url ?? localUrl(host, port, tls === null ? 'http' : 'https')
  }

  #once<T>(name: string, open: () => Promise<T>): Promise<T> {
    const opened = this.#opened.get(name) ?? open()
    this.#opened.set(name, opened)
    return opened as Promise<T>
  }

  async #engines(needed: readonly Needed[]): Promise<EngineUrls> {
    const { openEngines } = await import('./engines.ts')
    const { urls, close } = await openEngines(this.settings(), needed)
    this.#closers.push(close)
    return urls
  }

  async #connect(urls: EngineUrls): Promise<Database> {
    const database = await openDatabaseAt(urls, this.settings())
    this.#closers.push(() => database.close())
    return database
  }

  #withSimulator(url: string) {
    return { ...this.env, [SIMULATOR_URL_VARIABLE]: this.env[SIMULATOR_URL_VARIABLE] || url }
  }

  /** Returns the cluster of the call log; null also where no configuration is known. */
  #clickhouseCluster(): string | null {
    try {
      return this.loadConfig().config?.clickhouse.cluster ?? null
    } catch (error) {
      if (error instanceof UnknownConfig) return null
      throw error
    }
  }
}

/** Returns the actor for the audit record. In a container a user may have a number and no name. */
function nameOperator(): string {
  try {
    return `operator:${userInfo().username}`
  } catch {
    return `operator:${process.getuid?.() ?? 'unknown'}`
  }
}

async function openDatabaseAt({ databaseUrl, masterKey }: EngineUrls, { keys }: Settings): Promise<Database> {
  const { openDatabase } = await import('../postgres/database.ts')
  return openDatabase({
    url: databaseUrl!,
    masterKey: await masterKey(),
    keys,
    maxConnections: MAX_CONNECTIONS,
    name: CLIENT_NAME,
    actor: nameOperator(),
  })
}

/** Returns the address of the running service's NATS, or the configured one; null without either. */
const natsUrl = ({ dataDir, natsUrl: configured }: Settings): string | null =>
  readRunning(dataDir)?.nats_url ?? configured

/** Runs `work` until a signal. A second signal ends the process at once. */
async function untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  process.stdout.once('error', stop)
  await work(ending.signal)
}
