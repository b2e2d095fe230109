/** The engines of a command: the running service's, the configured ones, or temporary ones. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Settings } from '../../schemas/config/settings.ts'
import { DataDirInUse, type DataDirLock, lockDataDir, readRunning } from '../embedded/data-dir.ts'
import type { EngineName } from '../embedded/engine.ts'
import { servicePasswordOf } from '../embedded/postgres/postgres.ts'
import { startEmbedded } from '../embedded/start.ts'
import { completeRotation, currentMasterKey, findMasterKey } from '../postgres/accounts/master-key.ts'
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

export async function withEngines<T>(
  settings: Settings,
  needed: readonly Needed[],
  work: (urls: EngineUrls) => Promise<T>,
): Promise<T> {
  const running = runningUrls(settings)
  if (running !== null) return work(running)
  const missing = needed.filter((name) => configuredUrl(settings, name) === null)
  if (missing.length === 0) return work(await configured(settings, needed))
  if (!existsSync(settings.dataDir))
    process.stderr.write(
      `There was no data directory ${settings.dataDir}: a new one is created, without any account. Set TOLLGATE_DATA_DIR if yours is elsewhere.\n`,
    )
  const held = await holdDataDir(settings)
  if ('running' in held) return work(held.running)
  try {
    return await withOwn(settings, held.lock, { needed, missing }, work)
  } finally {
    held.lock.release()
  }
}

/** Starts nothing: null while no service runs here and something that is needed is not configured. */
export async function withServiceEngines<T>(
  settings: Settings,
  needed: readonly Needed[],
  work: (urls: EngineUrls) => Promise<T>,
): Promise<T | null> {
  const running = runningUrls(settings)
  if (running !== null) return work(running)
  if (needed.some((name) => configuredUrl(settings, name) === null)) return null
  return work(await configured(settings, needed))
}

function runningUrls(settings: Settings): EngineUrls | null {
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

function configuredUrl(settings: Settings, name: Needed): string | null {
  if (name === 'postgres') return settings.databaseUrl
  return name === 'clickhouse' ? settings.clickhouseUrl : null
}

async function configured(settings: Settings, needed: readonly Needed[]): Promise<EngineUrls> {
  const { databaseUrl, clickhouseUrl, dataDir } = settings
  if (needed.includes('postgres') && databaseUrl !== null)
    await migrateAsOwner(databaseUrl, settings.databaseOwnerUrl)
  const masterKey = async () => {
    if (settings.masterKey !== null) return settings.masterKey
    if (databaseUrl !== null) await completeRotation(dataDir, databaseUrl)
    return currentMasterKey(dataDir)
  }
  return { databaseUrl, clickhouseUrl, simulatorUrl: null, masterKey }
}

async function withOwn<T>(
  settings: Settings,
  { fd: lockFd }: DataDirLock,
  { needed, missing }: { needed: readonly Needed[]; missing: readonly EngineName[] },
  work: (urls: EngineUrls) => Promise<T>,
): Promise<T> {
  const { urls, stop } = await startEmbedded({ dataDir: settings.dataDir, lockFd, engines: missing })
  try {
    const { databaseUrl: ownerUrl } = urls
    const known = {
      ...settings,
      // A command may no more than the service.
      databaseUrl:
        settings.databaseUrl ??
        (ownerUrl && (await migrateEmbedded(ownerUrl, servicePasswordOf(settings.dataDir)))),
      clickhouseUrl: settings.clickhouseUrl ?? urls.clickhouseUrl,
    }
    return await work({ ...(await configured(known, needed)), simulatorUrl: urls.simulatorUrl })
  } finally {
    await stop()
  }
}

/** Waits while another command holds the directory, and takes the service that has started meanwhile. */
async function holdDataDir(settings: Settings): Promise<{ lock: DataDirLock } | { running: EngineUrls }> {
  const deadline = performance.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      return { lock: await lockDataDir(settings.dataDir) }
    } catch (error) {
      // The other one is not of this container: its engines cannot be reached from here.
      if (!(error instanceof DataDirInUse) || !error.isVisible || performance.now() > deadline) throw error
    }
    const running = runningUrls(settings)
    if (running !== null) return { running }
    await sleep(LOCK_POLL_MS)
  }
}
