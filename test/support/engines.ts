import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import postgres from 'postgres'
import { ENGINE_NAMES, type EngineEvent, type EngineName } from '../../src/embedded/engine.ts'
import { readPrivateJson } from '../../src/embedded/private-file.ts'
import { identify, isAlive, sendSignal } from '../../src/embedded/process-identity.ts'
import { type EmbeddedEngines, startEmbedded } from '../../src/embedded/start.ts'
import { EngineRecord } from '../../src/embedded/supervisor.ts'
import { copyCallLog } from './call-logs.ts'
import { lendCluster, MIGRATED_DATABASE } from './clusters.ts'
import { memoryFolder } from './memory-folder.ts'

/** Inside the checkout, but for ClickHouse's files: what a killed test left is found by the next. */
export const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate', import.meta.url))
const TEST_DATA = join(CACHE, 'test-data')
const MEMORY_DATA = memoryFolder()

/** What of tap's test is needed here. */
export interface Teardown {
  teardown(handler: () => unknown): void
}

/** The engines under a test, and their addresses; asking for one that was not started throws. */
export interface TestEngines extends Omit<EmbeddedEngines, 'urls' | 'stop'> {
  readonly dataDir: string
  readonly databaseUrl: string
  readonly natsUrl: string
  readonly clickhouseUrl: string
  readonly simulatorUrl: string
  /** What happened to the engines so far. */
  readonly events: readonly EngineEvent[]
}

export interface EngineOptions {
  /** All by default. */
  readonly only?: readonly EngineName[]
  /** ClickHouse has the tables of the call log already, and they do not wait for the disk; so for a whole service. */
  readonly withCallLog?: boolean
}

/**
 * Starts real engines in a folder of their own and ends them with the test. They end as well when the
 * test process is killed: the kernel sends each its signal then.
 * PostgreSQL starts on a cluster that is as new but for its migrated database, and does not wait for the disk.
 */
export async function startEngines(t: Teardown, options: EngineOptions = {}): Promise<TestEngines> {
  const names = options.only ?? ENGINE_NAMES
  if (process.env[KEPT_ENGINES_VARIABLE] === undefined || !names.every((name) => KEPT_ENGINES.includes(name)))
    return startOwn(t, options)
  const key = names.join()
  const engines = kept.get(key) ?? (await startOwn({ teardown() {} }, options))
  kept.set(key, engines)
  return renewEngines(engines, names)
}

/** Set in a process that repeats tests: engines stay for the next run of them, until the process ends. */
export const KEPT_ENGINES_VARIABLE = 'TEST_KEPT_ENGINES'
const KEPT_ENGINES: readonly EngineName[] = ['postgres', 'nats']
const kept = new Map<string, TestEngines>()

/** Borrows engines that already run, with a new database and without their streams. */
async function renewEngines(engines: TestEngines, names: readonly EngineName[]): Promise<TestEngines> {
  const health = engines.readHealth()
  for (const name of names) if (health[name]?.state === 'stopped') await engines.startEngine(name)
  if (names.includes('nats')) await removeStreams(engines.natsUrl)
  if (!names.includes('postgres')) return engines
  await removeDatabases(engines.databaseUrl)
  return Object.create(engines, { databaseUrl: { value: await migratedDatabase(engines.databaseUrl) } })
}

async function removeStreams(natsUrl: string): Promise<void> {
  const { host, username, password } = new URL(natsUrl)
  const connection = await connectNats({ servers: host, user: username, pass: password })
  const { streams } = await jetstreamManager(connection)
  for await (const { config } of streams.list()) await streams.delete(config.name)
  await connection.close()
}

async function removeDatabases(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1 })
  try {
    const found = await sql`SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'`
    for (const { datname } of found) await sql`DROP DATABASE ${sql(datname)} WITH (FORCE)`
  } finally {
    await sql.end()
  }
}

async function startOwn(
  t: Teardown,
  { only, withCallLog = only === undefined }: EngineOptions,
): Promise<TestEngines> {
  const names = only ?? ENGINE_NAMES
  const dataDir = await testDataDir(t)
  if (names.includes('postgres')) t.teardown(await lendCluster(CACHE, dataDir))
  if (names.includes('clickhouse')) await keepInMemory(t, dataDir, 'clickhouse')
  if (withCallLog) await copyCallLog(CACHE, dataDir)
  const events: EngineEvent[] = []
  const onEvent = (event: EngineEvent) => void events.push(event)
  const engines = await startEmbedded({ dataDir, engines: names, onEvent })
  t.teardown(() => engines.stop())
  const url = (value: string | null): string => {
    if (value === null) throw new Error('this engine was not asked for')
    return value
  }
  return {
    ...engines,
    dataDir,
    events,
    get databaseUrl() {
      return url(engines.urls.databaseUrl)
    },
    get natsUrl() {
      return url(engines.urls.natsUrl)
    },
    get clickhouseUrl() {
      return url(engines.urls.clickhouseUrl)
    },
    get simulatorUrl() {
      return url(engines.urls.simulatorUrl)
    },
  }
}

/** A new empty database beside the others in the same server; answers its URL. */
export const freshDatabase = (databaseUrl: string): Promise<string> => addDatabase(databaseUrl, 'template1')

/** The same, with the tables of this program. */
export const migratedDatabase = (databaseUrl: string): Promise<string> =>
  addDatabase(databaseUrl, MIGRATED_DATABASE)

async function addDatabase(databaseUrl: string, template: string): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const sql = postgres(databaseUrl, { max: 1 })
  try {
    // Copying files is less work than writing each page to the log, for a server that does not wait for the disk.
    await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(template)} STRATEGY file_copy`
  } finally {
    await sql.end()
  }
  const url = new URL(databaseUrl)
  url.pathname = `/${name}`
  return url.href
}

/** An empty folder for this test, removed with it. Its name says whose it is, so that it can be swept. */
export async function testDataDir(t: Teardown): Promise<string> {
  for (const folder of [TEST_DATA, MEMORY_DATA]) if (folder !== null) await sweep(folder)
  const self = identify(process.pid)
  const dir = join(TEST_DATA, `${process.pid}@${self?.start ?? ''}@${randomBytes(4).toString('hex')}`)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  // Handlers run last first: engines that are started later in this folder are stopped before.
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  // A process ends no sooner than the disk has its writes, and that may take a minute behind an install.
  await keepInMemory(t, dir, 'journal')
  return dir
}

/** `<dataDir>/<part>` leads there. */
async function keepInMemory(t: Teardown, dataDir: string, part: string): Promise<void> {
  if (MEMORY_DATA === null) return
  const own = join(MEMORY_DATA, basename(dataDir))
  const dir = join(own, part)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  t.teardown(() => rm(own, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  await symlink(dir, join(dataDir, part))
}

/** Removes the folders of test processes that are gone, and any engine that should still run in one. */
async function sweep(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    const [pid, start = ''] = name.split('@')
    if (isAlive({ pid: Number(pid), start })) continue
    const dir = join(folder, name)
    for (const engine of ENGINE_NAMES) {
      const record = readPrivateJson(join(dir, 'engines', `${engine}.json`), EngineRecord)
      if (record?.process) sendSignal(record.process, 'SIGKILL')
    }
    await rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}
