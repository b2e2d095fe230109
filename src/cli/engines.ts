/** The engines of a command: the running service's, the configured ones, or temporary ones. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Settings } from '../../schemas/config/settings.ts'
import { DataDirInUse, type DataDirLock, lockDataDir, readRunning } from '../embedded/data-dir.ts'
import { readServicePassword } from '../embedded/postgres/postgres.ts'
import { startEmbedded } from '../embedded/start.ts'
import { completeRotation, findMasterKey, readMasterKey } from '../postgres/accounts/master-key.ts'
import { migrateAsOwner, migrateEmbedded } from '../postgres/roles.ts'

/** Time to wait for another command, or a service that is starting. */
const LOCK_WAIT_MS = 60_000
const LOCK_POLL_MS = 100

export type Needed = 'postgres' | 'clickhouse' | 'simulator'

/** Addresses of the engines requested; null for those that were not and do not run. */
export interface EngineUrls {
  readonly databaseUrl: string | null
  readonly clickhouseUrl: string | null
  readonly simulatorUrl: string | null
  /** Returns the master key of the database. */
  masterKey(): Promise<Buffer>
}

interface OpenedEngines {
  readonly urls: EngineUrls
  /** Stops those that were started. */
  close(): Promise<void>
}

const keepRunning = async () => {}

export async function openEngines(settings: Settings, needed: readonly Needed[]): Promise<OpenedEngines> {
  const urls = await findEngines(settings, needed)
  if (urls !== null) return { urls, close: keepRunning }
  if (!existsSync(settings.dataDir))
    process.stderr.write(
      `There was no data directory ${settings.dataDir}: a new one is created, without any account. Set TOLLGATE_DATA_DIR if yours is elsewhere.\n`,
    )
  const held = await holdDataDir(settings)
  return 'running' in held
    ? { urls: held.running, close: keepRunning }
    : startOwn(settings, held.lock, needed)
}

/** Starts nothing. Returns null if no service runs here and something that is needed is not configured. */
export async function findEngines(settings: Settings, needed: readonly Needed[]): Promise<EngineUrls | null> {
  const running = findRunning(settings)
  if (running !== null) return running
  return needed.some((name) => findConfigured(settings, name) === null)
    ? null
    : prepareConfigured(settings, needed)
}

function findRunning(settings: Settings): EngineUrls | null {
  const running = readRunning(settings.dataDir)
  if (running === null) return null
  return {
    databaseUrl: running.database_url,
    clickhouseUrl: running.clickhouse_url,
    simulatorUrl: running.simulator_url,
    async masterKey() {
      if (settings.masterKey !== null) return settings.masterKey
      await completeRotation(settings.dataDir, running.database_url)
      const key = findMasterKey(settings.dataDir)
      if (key !== null) return key
      throw new Error(
        'TOLLGATE_MASTER_KEY is required: set the one that the running service was started with',
      )
    },
  }
}

function findConfigured(settings: Settings, name: Needed): string | null {
  if (name === 'postgres') return settings.databaseUrl
  return name === 'clickhouse' ? settings.clickhouseUrl : null
}

async function prepareConfigured(settings: Settings, needed: readonly Needed[]): Promise<EngineUrls> {
  const { databaseUrl, clickhouseUrl, dataDir } = settings
  if (needed.includes('postgres') && databaseUrl !== null)
    await migrateAsOwner(databaseUrl, settings.databaseOwnerUrl)
  const masterKey = async () => {
    if (settings.masterKey !== null) return settings.masterKey
    if (databaseUrl !== null) await completeRotation(dataDir, databaseUrl)
    return readMasterKey(dataDir)
  }
  return { databaseUrl, clickhouseUrl, simulatorUrl: null, masterKey }
}

async function startOwn(
  settings: Settings,
  lock: DataDirLock,
  needed: readonly Needed[],
): Promise<OpenedEngines> {
  const { dataDir } = settings
  const missing = needed.filter((name) => findConfigured(settings, name) === null)
  let stop = keepRunning
  const close = async () => {
    try {
      await stop()
    } finally {
      lock.release()
    }
  }
  try {
    const started = await startEmbedded({ dataDir, lockFd: lock.fd, engines: missing })
    stop = started.stop
    const { databaseUrl: ownerUrl, clickhouseUrl, simulatorUrl } = started.urls
    // A command has only the permissions of the service.
    const ownUrl = ownerUrl && (await migrateEmbedded(ownerUrl, readServicePassword(dataDir)))
    const known = {
      ...settings,
      databaseUrl: settings.databaseUrl ?? ownUrl,
      clickhouseUrl: settings.clickhouseUrl ?? clickhouseUrl,
    }
    return { urls: { ...(await prepareConfigured(known, needed)), simulatorUrl }, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Waits while another command holds the directory, and uses a service that has started in the meantime. */
async function holdDataDir(settings: Settings): Promise<{ lock: DataDirLock } | { running: EngineUrls }> {
  const deadline = performance.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      return { lock: await lockDataDir(settings.dataDir) }
    } catch (error) {
      // The holder is not in this container: its engines cannot be reached from here.
      if (!(error instanceof DataDirInUse) || !error.isVisible || performance.now() > deadline) throw error
    }
    const running = findRunning(settings)
    if (running !== null) return { running }
    await sleep(LOCK_POLL_MS)
  }
}
