/** The command line on the real engines. Loads only the modules that a command needs. */
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import type { RebuildProgress, RebuildResult } from '../../pipelines/call-log/rebuild.ts'
import type { ChannelDeps } from '../../pipelines/management/channels/channels.ts'
import type { JournalDeps } from '../../pipelines/management/jobs/journals.ts'
import {
  CHANNEL_REPORT_SUBJECT,
  type ProcessReport,
  processReport,
} from '../../schemas/config/channel-report.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import type { Settings } from '../../schemas/config/settings.ts'
import type { CallLog } from '../clickhouse/call-log.ts'
import { DEMONSTRATION_FILE, needsSimulator, SIMULATOR_URL_VARIABLE } from '../config/demonstration.ts'
import { loadConfigFile } from '../config/load.ts'
import { localUrl, readSettings } from '../config/settings.ts'
import type { Environment } from '../config/source.ts'
import { findInJournals } from '../journal/find-call.ts'
import type { Provider } from '../payments/provider.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import { askOnTerminal } from './accounts/confirm.ts'
import { ConfigProblems } from './config/config.ts'
import { findConfigFile, UnknownConfig } from './config/file.ts'
import type { EngineUrls } from './engines.ts'
import { run } from './program.ts'
import type {
  Books,
  ChannelHealth,
  CheckedConfig,
  LoadOptions,
  TaskAdmin,
  WikiBooks,
  Wiring,
} from './wiring.ts'

/** Placeholder of the simulated provider's address where only the file is checked. */
const ANY_SIMULATOR_URL = 'http://127.0.0.1:9'
const MAX_CONNECTIONS = 2
/** Folder of the gateways' journals in a data directory. */
const JOURNAL_FOLDER = 'journal'

/** @returns the exit code */
export function main(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  // A reader such as `head` may close the pipe before the end.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  return run(argv, realWiring(env))
}

const realWiring = (env: NodeJS.ProcessEnv): Wiring => ({
  async serve(options) {
    const { serve } = await import('../server/supervisor/supervisor.ts')
    return serve(env, options)
  },
  withDatabase: (work) => withDatabase(env, work),
  withServiceDatabase: (work) => withServiceDatabase(env, work),
  withBooks: (work) => withBooks(env, work),
  withUsage: (work) => withStores(env, ({ database, callLog }) => work({ database, log: callLog })),
  withLibrary: (work) => withLibrary(env, work),
  withTasks: (work) => withTasks(env, work),
  withChannels: (work) => withChannels(env, work),
  withJournals: (work) => withJournals(env, work),
  rotateMasterKey: (options) => rotateMasterKey(env, options),
  rebuildLog: (onProgress) => rebuildLog(env, onProgress),
  loadConfig: (options) => loadConfig(env, options),
  channelHealth: () => channelHealth(env),
  readList: async (source) => (await import('./config/price-list-source.ts')).readList(source),
  processReports: () => processReports(readSettings(env)),
  findInJournals: (requestId) => findInJournals(join(readSettings(env).dataDir, JOURNAL_FOLDER), requestId),
  openProvider: () => openProvider(env),
  actor: operator,
  publicUrl: () => publicUrl(readSettings(env)),
  confirm: askOnTerminal,
  untilStopped,
})

const withSimulator = (env: Environment, url: string): Environment => ({
  ...env,
  [SIMULATOR_URL_VARIABLE]: env[SIMULATOR_URL_VARIABLE] || url,
})

function loadConfig(env: NodeJS.ProcessEnv, { file, parts }: LoadOptions = {}): CheckedConfig {
  const path = file === undefined ? findConfigFile(env) : resolve(file)
  const loaded = loadConfigFile(path, withSimulator(env, ANY_SIMULATOR_URL), parts)
  return loaded.ok
    ? { file: path, config: loaded.config, problems: [], warnings: loaded.warnings }
    : { file: path, config: null, problems: loaded.problems, warnings: [] }
}

/** Returns the actor for the audit record. In a container a user may have a number and no name. */
function operator(): string {
  try {
    return `operator:${userInfo().username}`
  } catch {
    return `operator:${process.getuid?.() ?? 'unknown'}`
  }
}

async function openDatabase(
  { databaseUrl: url, masterKey }: EngineUrls,
  { keys }: Settings,
): Promise<Database> {
  if (url === null) throw new Error('There is no PostgreSQL to work on')
  const { openDatabase: open } = await import('../postgres/database.ts')
  return open({
    url,
    masterKey: await masterKey(),
    keys,
    maxConnections: MAX_CONNECTIONS,
    name: 'tollgate command',
    actor: operator(),
  })
}

async function withDatabase<T>(env: NodeJS.ProcessEnv, work: (database: Database) => Promise<T>): Promise<T> {
  const { withEngines } = await import('./engines.ts')
  const settings = readSettings(env)
  return withEngines(settings, ['postgres'], (urls) => onDatabase(urls, settings, work))
}

async function withServiceDatabase<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database) => Promise<T>,
): Promise<T | null> {
  const { withServiceEngines } = await import('./engines.ts')
  const settings = readSettings(env)
  return withServiceEngines(settings, ['postgres'], (urls) => onDatabase(urls, settings, work))
}

async function onDatabase<T>(
  urls: EngineUrls,
  settings: Settings,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(urls, settings)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

async function withLibrary<T>(env: NodeJS.ProcessEnv, work: (library: WikiBooks) => Promise<T>): Promise<T> {
  const settings = readSettings(env)
  const [{ withEngines }, { storeOf }, url] = await Promise.all([
    import('./engines.ts'),
    import('../storage/open-store.ts'),
    publicUrl(settings),
  ])
  return withEngines(settings, ['postgres'], (urls) =>
    onDatabase(urls, settings, async (database) => {
      const store = await storeOf({ ...settings, publicUrl: url, fileLinkKey: database.fileLinkKey })
      return work({ database, store })
    }),
  )
}

interface Stores {
  readonly database: Database
  readonly callLog: CallLog
}

async function withStores<T>(env: NodeJS.ProcessEnv, work: (stores: Stores) => Promise<T>): Promise<T> {
  const [{ withEngines }, { openCallLog }] = await Promise.all([
    import('./engines.ts'),
    import('../clickhouse/call-log.ts'),
  ])
  const settings = readSettings(env)
  return withEngines(settings, ['postgres', 'clickhouse'], async (urls) => {
    if (urls.clickhouseUrl === null) throw new Error('There is no ClickHouse to work on')
    const database = await openDatabase(urls, settings)
    const callLog = openCallLog(urls.clickhouseUrl, clickhouseCluster(env))
    try {
      return await work({ database, callLog })
    } finally {
      await Promise.all([database.close(), callLog.close()])
    }
  })
}

/** Returns the cluster of the call log; null also where no configuration is known. */
function clickhouseCluster(env: NodeJS.ProcessEnv): string | null {
  try {
    const loaded = loadConfigFile(findConfigFile(env), withSimulator(env, ANY_SIMULATOR_URL))
    return loaded.ok ? loaded.config.clickhouse.cluster : null
  } catch (error) {
    if (error instanceof UnknownConfig) return null
    throw error
  }
}

const withBooks = <T>(env: NodeJS.ProcessEnv, work: (books: Books) => Promise<T>): Promise<T> =>
  withStores(env, ({ database, callLog }) => work({ database, log: callLog }))

async function rotateMasterKey(
  env: NodeJS.ProcessEnv,
  options: { readonly endLinks: boolean },
): Promise<number | null> {
  const [{ rotate }, settings] = [await import('./accounts/master-key-rotation.ts'), readSettings(env)]
  return withDatabase(env, (database) => rotate(database, settings, options))
}

async function rebuildLog(
  env: NodeJS.ProcessEnv,
  onProgress: (progress: RebuildProgress) => void,
): Promise<RebuildResult> {
  const { rebuildLog: rebuild } = await import('../../pipelines/call-log/rebuild.ts')
  return withStores(env, (stores) => rebuild({ ...stores, onProgress }))
}

async function channelHealth(env: NodeJS.ProcessEnv): Promise<ChannelHealth[]> {
  const path = findConfigFile(env)
  const load = (simulatorUrl: string) => {
    const loaded = loadConfigFile(path, withSimulator(env, simulatorUrl))
    if (!loaded.ok) throw new ConfigProblems(loaded.problems)
    return loaded
  }
  const { probeChannels } = await import('./config/channel-probe.ts')
  const probe = (config: ConfigFile) => probeChannels(config.channels)
  const { variables, config } = load(ANY_SIMULATOR_URL)
  if (!needsSimulator(variables) || env[SIMULATOR_URL_VARIABLE]) return probe(config)
  const { withEngines } = await import('./engines.ts')
  return withEngines(readSettings(env), ['simulator'], ({ simulatorUrl }) =>
    probe(load(simulatorUrl ?? ANY_SIMULATOR_URL).config),
  )
}

/** Webhooks come to the gateways: a command needs no secret for them. */
async function openProvider(env: NodeJS.ProcessEnv): Promise<(() => Promise<Provider>) | null> {
  const [{ lazyProvider }, { paymentSettings }, { readRunning }] = await Promise.all([
    import('../payments/provider.ts'),
    import('../payments/settings.ts'),
    import('../embedded/data-dir.ts'),
  ])
  const { payments, dataDir } = readSettings(env)
  const running = readRunning(dataDir)
  const isDemonstration = running?.config_file === DEMONSTRATION_FILE
  return lazyProvider(paymentSettings(payments, isDemonstration ? (running.simulator_url ?? null) : null, ''))
}

/** A machine under load takes seconds to connect. */
const CONNECT_BOUND_MS = 10_000
const SURVEY_BOUND_MS = 2_000
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

async function publicUrl({ publicUrl: configured, dataDir, host, port, tls }: Settings): Promise<string> {
  if (configured !== null) return configured
  const { readRunning } = await import('../embedded/data-dir.ts')
  return readRunning(dataDir)?.base_url ?? localUrl(host, port, tls === null ? 'http' : 'https')
}

/** Returns the address of the running service's NATS, or the configured one; null without either. */
async function natsUrl({ dataDir, natsUrl: configured }: Settings): Promise<string | null> {
  const { readRunning } = await import('../embedded/data-dir.ts')
  return readRunning(dataDir)?.nats_url ?? configured
}

async function withTasks<T>(env: NodeJS.ProcessEnv, work: (desk: TaskAdmin) => Promise<T>): Promise<T> {
  const [url, { openNats }, { taskMessages }] = await Promise.all([
    natsUrl(readSettings(env)),
    import('../nats/nats.ts'),
    import('../../pipelines/tasks/worker/messages.ts'),
  ])
  return withDatabase(env, async (database) => {
    const cancel = (task: Task) => cancelAtProvider(env, task)
    // Without a running process no notification is needed: each reads the rows when it starts.
    if (url === null)
      return work({
        database,
        messages: { publish() {}, announce() {}, announceWallets() {} },
        cancelUpstream: cancel,
      })
    const nats = openNats({ url, name: 'tollgate command line', log: silent })
    try {
      await nats.connected(CONNECT_BOUND_MS)
      return await work({ database, messages: taskMessages(nats, silent), cancelUpstream: cancel })
    } finally {
      await nats.close()
    }
  })
}

async function withJournals<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database, deps: JournalDeps) => Promise<T>,
): Promise<T> {
  const [url, { openNats }, { journalDeps }] = await Promise.all([
    natsUrl(readSettings(env)),
    import('../nats/nats.ts'),
    import('../server/journal-deps.ts'),
  ])
  return withDatabase(env, async (database) => {
    if (url === null) return work(database, { journals: journalDeps(null, silent) })
    const nats = openNats({ url, name: 'tollgate command line', log: silent })
    try {
      await nats.connected(CONNECT_BOUND_MS)
      return await work(database, { journals: journalDeps(nats, silent) })
    } finally {
      await nats.close()
    }
  })
}

/** @throws ConfigProblems */
function configWith(env: NodeJS.ProcessEnv, simulatorUrl: string): ConfigFile {
  const loaded = loadConfigFile(findConfigFile(env), withSimulator(env, simulatorUrl))
  if (!loaded.ok) throw new ConfigProblems(loaded.problems)
  return loaded.config
}

async function withChannels<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database, deps: ChannelDeps) => Promise<T>,
): Promise<T> {
  const [{ openCalls }, { createCatalog }, { readRunning }] = await Promise.all([
    import('./upstream-calls.ts'),
    import('../core/routing/catalog.ts'),
    import('../embedded/data-dir.ts'),
  ])
  const settings = readSettings(env)
  const simulatorUrl = readRunning(settings.dataDir)?.simulator_url ?? ANY_SIMULATOR_URL
  const catalog = createCatalog(configWith(env, simulatorUrl))
  const { openUpstream, close } = openCalls()
  const deps: ChannelDeps = {
    catalog: () => catalog,
    processReports: () => processReports(settings),
    openUpstream,
  }
  try {
    return await withDatabase(env, (database) => work(database, deps))
  } finally {
    close()
  }
}

/** Requests a cancel from the provider as the gateway does, with the channels of the service's configuration. */
async function cancelAtProvider(env: NodeJS.ProcessEnv, task: Task): Promise<void> {
  const [{ cancelUpstream }, { openCalls }, { taskAdapterOf }, { createCatalog }, { readRunning }] =
    await Promise.all([
      import('../../pipelines/tasks/end/cancel-upstream.ts'),
      import('./upstream-calls.ts'),
      import('../server/tasks/adapters.ts'),
      import('../core/routing/catalog.ts'),
      import('../embedded/data-dir.ts'),
    ])
  const simulatorUrl = readRunning(readSettings(env).dataDir)?.simulator_url ?? ANY_SIMULATOR_URL
  const catalog = createCatalog(configWith(env, simulatorUrl))
  const { media: calls, close } = openCalls()
  try {
    await cancelUpstream({ calls, adapterOf: taskAdapterOf, catalog: () => catalog }, task)
  } finally {
    close()
  }
}

async function processReports(settings: Settings): Promise<ProcessReport[] | null> {
  const url = await natsUrl(settings)
  if (url === null) return null
  const { survey } = await import('../nats/survey.ts')
  const answers = await survey({
    url,
    name: 'tollgate command line',
    log: silent,
    subject: CHANNEL_REPORT_SUBJECT,
    boundMs: SURVEY_BOUND_MS,
  })
  return answers?.map((answer) => processReport.parse(JSON.parse(answer))) ?? null
}

/** Runs `work` until a signal. A second signal ends the process at once. */
async function untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.once(signal, stop)
  process.stdout.once('error', stop)
  try {
    await work(ending.signal)
  } finally {
    for (const signal of signals) process.off(signal, stop)
    process.stdout.off('error', stop)
  }
}
