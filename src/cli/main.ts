/** The command line on the real engines. Loads only the modules that a command needs. */
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import type { RebuildProgress, RebuildResult } from '../../pipelines/call-log/rebuild.ts'
import type { ChannelDeps } from '../../pipelines/management/channels/channels.ts'
import type { JournalDeps } from '../../pipelines/management/jobs/journals.ts'
import type { UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import { CHANNEL_REPORT_SUBJECT, type ProcessReport } from '../../schemas/config/channel-report.ts'
import type { Settings } from '../../schemas/config/settings.ts'
import type { CallLog } from '../clickhouse/call-log.ts'
import { DEMONSTRATION_FILE, needsSimulator, SIMULATOR_URL_VARIABLE } from '../config/demonstration.ts'
import { loadConfigFile } from '../config/load.ts'
import { localUrl, readSettings } from '../config/settings.ts'
import type { Environment } from '../config/source.ts'
import type { Catalog } from '../core/routing/catalog.ts'
import { readRunning } from '../embedded/data-dir.ts'
import { findInJournals } from '../journal/find-call.ts'
import type { Nats } from '../nats/nats.ts'
import type { Provider } from '../payments/provider.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import { readReports } from '../server/process-reports.ts'
import { ConfigProblems } from './config/config.ts'
import { findConfigFile, UnknownConfig } from './config/file.ts'
import { askOnTerminal } from './confirm.ts'
import type { EngineUrls } from './engines.ts'
import { run } from './program.ts'
import type { ChannelHealth, CheckedConfig, LoadOptions, TaskAdmin, WikiBooks, Wiring } from './wiring.ts'

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

/** Returns what commands do on the real engines that this environment leads to. */
export const realWiring = (env: NodeJS.ProcessEnv): Wiring => ({
  async serve(options) {
    const { serve } = await import('../server/supervisor/supervisor.ts')
    return serve(env, options)
  },
  withDatabase: (work) => withDatabase(env, work),
  withServiceDatabase: (work) => withServiceDatabase(env, work),
  withCallLog: (work) => withCallLog(env, work),
  withLibrary: (work) => withLibrary(env, work),
  withTasks: (work) => withTasks(env, work),
  withChannels: (work) => withChannels(env, work),
  withJournals: (work) => withJournals(env, work),
  rotateMasterKey: (options) => rotateMasterKey(env, options),
  rebuildLog: (onProgress, confirmDeletion) => rebuildLog(env, onProgress, confirmDeletion),
  loadConfig: (options) => loadConfig(env, options),
  channelHealth: () => channelHealth(env),
  readList: async (source) => (await import('./config/price-list-source.ts')).readList(source),
  processReports: () => processReports(readSettings(env)),
  findInJournals: (requestId) => findInJournals(join(readSettings(env).dataDir, JOURNAL_FOLDER), requestId),
  openProvider: () => openProvider(env),
  actor: operator,
  publicUrl: async () => publicUrl(readSettings(env)),
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
  { databaseUrl: url, masterKey }: EngineUrls,
  { keys }: Settings,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  if (url === null) throw new Error('There is no PostgreSQL to work on')
  const { openDatabase } = await import('../postgres/database.ts')
  const database = await openDatabase({
    url,
    masterKey: await masterKey(),
    keys,
    maxConnections: MAX_CONNECTIONS,
    name: 'tollgate command',
    actor: operator(),
  })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

async function withLibrary<T>(env: NodeJS.ProcessEnv, work: (library: WikiBooks) => Promise<T>): Promise<T> {
  const settings = readSettings(env)
  const base = { ...settings, publicUrl: publicUrl(settings) }
  const { openStore } = await import('../storage/open-store.ts')
  return withDatabase(env, async (database) =>
    work({ database, store: await openStore({ ...base, fileLinkKey: database.masterKey.fileLinkKey }) }),
  )
}

async function withCallLog<T>(
  env: NodeJS.ProcessEnv,
  work: (stores: { database: Database; callLog: CallLog }) => Promise<T>,
): Promise<T> {
  const [{ withEngines }, { openCallLog }] = await Promise.all([
    import('./engines.ts'),
    import('../clickhouse/call-log.ts'),
  ])
  const settings = readSettings(env)
  return withEngines(settings, ['postgres', 'clickhouse'], (urls) =>
    onDatabase(urls, settings, async (database) => {
      if (urls.clickhouseUrl === null) throw new Error('There is no ClickHouse to work on')
      const callLog = openCallLog(urls.clickhouseUrl, clickhouseCluster(env))
      try {
        return await work({ database, callLog })
      } finally {
        await callLog.close()
      }
    }),
  )
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

async function rotateMasterKey(
  env: NodeJS.ProcessEnv,
  options: { readonly endLinks: boolean },
): Promise<number | null> {
  const { rotate } = await import('./master-key.ts')
  return withDatabase(env, (database) => rotate(database, readSettings(env), options))
}

async function rebuildLog(
  env: NodeJS.ProcessEnv,
  onProgress: (progress: RebuildProgress) => void,
  confirmDeletion?: (unbooked: UnbookedSum) => Promise<void>,
): Promise<RebuildResult> {
  const { rebuildLog: rebuild } = await import('../../pipelines/call-log/rebuild.ts')
  return withCallLog(env, (stores) =>
    rebuild({ ...stores, onProgress, ...(confirmDeletion && { confirmDeletion }) }),
  )
}

async function channelHealth(env: NodeJS.ProcessEnv): Promise<ChannelHealth[]> {
  const { probeChannels } = await import('./config/channel-probe.ts')
  const { variables, config } = serviceConfig(env, ANY_SIMULATOR_URL)
  if (!needsSimulator(variables) || env[SIMULATOR_URL_VARIABLE]) return probeChannels(config.channels)
  const { withEngines } = await import('./engines.ts')
  return withEngines(readSettings(env), ['simulator'], ({ simulatorUrl }) =>
    probeChannels(serviceConfig(env, simulatorUrl ?? ANY_SIMULATOR_URL).config.channels),
  )
}

/** Webhooks come to the gateways: a command needs no secret for them. */
async function openProvider(env: NodeJS.ProcessEnv): Promise<(() => Promise<Provider>) | null> {
  const [{ lazyProvider }, { paymentSettings }] = await Promise.all([
    import('../payments/provider.ts'),
    import('../payments/settings.ts'),
  ])
  const { payments, dataDir } = readSettings(env)
  const running = readRunning(dataDir)
  const isDemonstration = running?.config_file === DEMONSTRATION_FILE
  return lazyProvider(paymentSettings(payments, isDemonstration ? running.simulator_url : null, ''))
}

/** A machine under load takes seconds to connect. */
const CONNECT_BOUND_MS = 10_000
const SURVEY_BOUND_MS = 2_000
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

function publicUrl({ publicUrl: configured, dataDir, host, port, tls }: Settings): string {
  if (configured !== null) return configured
  return readRunning(dataDir)?.base_url ?? localUrl(host, port, tls === null ? 'http' : 'https')
}

/** Returns the address of the running service's NATS, or the configured one; null without either. */
const natsUrl = ({ dataDir, natsUrl: configured }: Settings): string | null =>
  readRunning(dataDir)?.nats_url ?? configured

/** Runs `work` on the database, and with the NATS of the service; null where its address is not known. */
async function withNats<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database, nats: Nats | null) => Promise<T>,
): Promise<T> {
  const url = natsUrl(readSettings(env))
  const { openNats } = await import('../nats/nats.ts')
  return withDatabase(env, async (database) => {
    if (url === null) return work(database, null)
    const nats = openNats({ url, name: 'tollgate command line', log: silent })
    try {
      await nats.connected(CONNECT_BOUND_MS)
      return await work(database, nats)
    } finally {
      await nats.close()
    }
  })
}

/** Without a running process no notification is needed: each reads the rows when it starts. */
const NO_MESSAGES: TaskAdmin['messages'] = { publish() {}, announce() {}, announceWallets() {} }

async function withTasks<T>(env: NodeJS.ProcessEnv, work: (desk: TaskAdmin) => Promise<T>): Promise<T> {
  const { taskMessages } = await import('../../pipelines/tasks/worker/messages.ts')
  return withNats(env, (database, nats) =>
    work({
      database,
      messages: nats === null ? NO_MESSAGES : taskMessages(nats, silent),
      cancelUpstream: (task) => cancelAtProvider(env, task),
    }),
  )
}

async function withJournals<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database, deps: JournalDeps) => Promise<T>,
): Promise<T> {
  const { journalDeps } = await import('../server/journal-deps.ts')
  return withNats(env, (database, nats) => work(database, { journals: journalDeps(nats, silent) }))
}

/** Loads the configuration of the service. @throws ConfigProblems, UnknownConfig */
function serviceConfig(env: NodeJS.ProcessEnv, simulatorUrl: string) {
  const loaded = loadConfigFile(findConfigFile(env), withSimulator(env, simulatorUrl))
  if (!loaded.ok) throw new ConfigProblems(loaded.problems)
  return loaded
}

/** Returns the catalog of the service, with the simulated provider that runs. @throws as `serviceConfig` does */
async function serviceCatalog(env: NodeJS.ProcessEnv): Promise<Catalog> {
  const { createCatalog } = await import('../core/routing/catalog.ts')
  const simulatorUrl = readRunning(readSettings(env).dataDir)?.simulator_url ?? ANY_SIMULATOR_URL
  return createCatalog(serviceConfig(env, simulatorUrl).config)
}

async function withChannels<T>(
  env: NodeJS.ProcessEnv,
  work: (database: Database, deps: ChannelDeps) => Promise<T>,
): Promise<T> {
  const { openCalls } = await import('./upstream-calls.ts')
  const catalog = await serviceCatalog(env)
  const { openUpstream, close } = openCalls()
  const deps: ChannelDeps = {
    catalog: () => catalog,
    processReports: () => processReports(readSettings(env)),
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
  const [{ cancelUpstream }, { openCalls }, { taskAdapterOf }] = await Promise.all([
    import('../../pipelines/tasks/end/cancel-upstream.ts'),
    import('./upstream-calls.ts'),
    import('../server/tasks/adapters.ts'),
  ])
  const catalog = await serviceCatalog(env)
  const { media: calls, close } = openCalls()
  try {
    await cancelUpstream({ calls, adapterOf: taskAdapterOf, catalog: () => catalog }, task)
  } finally {
    close()
  }
}

async function processReports(settings: Settings): Promise<ProcessReport[] | null> {
  const url = natsUrl(settings)
  if (url === null) return null
  const { survey } = await import('../nats/survey.ts')
  const answers = await survey({
    url,
    name: 'tollgate command line',
    log: silent,
    subject: CHANNEL_REPORT_SUBJECT,
    boundMs: SURVEY_BOUND_MS,
  })
  return readReports(answers)
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
