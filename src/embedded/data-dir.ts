import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { PRIVATE_MODE, readPrivateJson, writePrivateFile } from './private-file.ts'
import { identify, isAlive } from './process-identity.ts'

const Holder = z.object({ pid: z.int().positive(), start: z.string(), since: z.iso.datetime() })
type Holder = z.infer<typeof Holder>

const RunRecord = z.object({
  pid: z.int().positive(),
  /** Address on this machine; null for a service without a gateway. */
  base_url: z.url().nullable(),
  /** Address of the metrics for operators; null without a listener for them. */
  admin_url: z.url().nullish(),
  /** The key of the first account, where the service made it. */
  first_key: z.string().nullish(),
  /** Signs in the first operator, once and within 15 minutes. */
  sign_in_url: z.string().nullish(),
  database_url: z.string(),
  nats_url: z.string(),
  clickhouse_url: z.string(),
  simulator_url: z.string().nullish(),
  /** The configuration in use, absolute; absent where an earlier version wrote the record. */
  config_file: z.string().nullish(),
  started_at: z.iso.datetime(),
  /** Distinguishes this process from a later one with the same pid; see ProcessIdentity. */
  process_start: z.string(),
})

/** `run.json`: where a running service is, for the command line. Holds passwords of engines and the first key. */
export type RunRecord = z.infer<typeof RunRecord>

/** The service's addresses, known once it listens; the rest of the record is added here. */
export type RunAddress = Omit<RunRecord, 'pid' | 'process_start' | 'started_at'>

const LastConfig = z.object({ config_file: z.string().nullable() })

/** Another service holds this data directory. */
export class DataDirInUse extends Error {
  readonly pid: number

  constructor(dir: string, holder: Holder, baseUrl: string | null) {
    const at = baseUrl === null ? '' : ` and answers at ${baseUrl}`
    super(
      `${dir} is in use: process ${holder.pid} has held it since ${holder.since}${at}. ` +
        `Stop that one, or choose another folder with TOLLGATE_DATA_DIR.`,
    )
    this.pid = holder.pid
  }
}

export interface DataDirLock {
  /** Absolute. */
  readonly dir: string
  /** The service before this one was killed: processes of it may be ending just now. */
  readonly wasKilled: boolean
  /** Writes `run.json`, which `release` removes. */
  writeRunFile(address: RunAddress): void
  /** Notes the configuration file for `readLastConfig`; null for the demonstration. */
  rememberConfig(file: string | null): void
  release(): void
}

/**
 * Makes the data directory, for its owner alone, and holds it until `release` or the end of this process.
 * A lock that a killed process left is taken over; one of a pid that belongs to another by now as well.
 *
 * @throws DataDirInUse while another service holds it
 */
export async function lockDataDir(path: string): Promise<DataDirLock> {
  const dir = resolve(path)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const guard = await takeGuard(dir)
  let wasKilled: boolean
  try {
    wasKilled = takeLock(dir)
  } finally {
    guard.close()
  }
  const runFile = join(dir, 'run.json')
  let released = false
  const release = () => {
    // At a second call the lock may be another process's.
    if (released) return
    released = true
    rmSync(runFile, { force: true })
    rmSync(lockFile(dir), { force: true })
    process.off('exit', release)
  }
  process.once('exit', release)
  return {
    dir,
    wasKilled,
    writeRunFile(address) {
      const self = ourIdentity()
      const started = { started_at: new Date().toISOString(), process_start: self.start }
      writePrivateFile(runFile, `${JSON.stringify({ pid: self.pid, ...address, ...started }, null, 2)}\n`)
    },
    rememberConfig: (file) =>
      writePrivateFile(lastConfigFile(dir), `${JSON.stringify({ config_file: file })}\n`),
    release,
  }
}

/**
 * Returns the configuration file of the service that ran last in this data directory; null for none and for the
 * demonstration.
 */
export const readLastConfig = (path: string): string | null =>
  readPrivateJson(lastConfigFile(resolve(path)), LastConfig)?.config_file ?? null

/** Returns the service that runs in this data directory now; null without one. */
export function readRunning(path: string): RunRecord | null {
  const record = readPrivateJson(join(resolve(path), 'run.json'), RunRecord)
  if (record === null) return null
  return isAlive({ pid: record.pid, start: record.process_start }) ? record : null
}

const lastConfigFile = (dir: string): string => join(dir, 'last-config.json')

function lockFile(dir: string): string {
  return join(dir, 'lock')
}

/** Takes the lock. Returns whether a dead holder had left its lock. */
function takeLock(dir: string): boolean {
  const path = lockFile(dir)
  const holder = readPrivateJson(path, Holder)
  if (holder !== null && isAlive(holder)) {
    throw new DataDirInUse(dir, holder, readRunning(dir)?.base_url ?? null)
  }
  rmSync(path, { force: true })
  const own: Holder = { ...ourIdentity(), since: new Date().toISOString() }
  const written = `${path}.${randomBytes(4).toString('hex')}`
  writeFileSync(written, `${JSON.stringify(own)}\n`, { mode: PRIVATE_MODE, flag: 'wx' })
  try {
    // Fails when the file exists: no process reads a partial lock or replaces a whole one.
    linkSync(written, path)
  } finally {
    rmSync(written, { force: true })
  }
  return holder !== null
}

const GUARD_BOUND_MS = 5_000
const GUARD_POLL_MS = 20

/**
 * Takes the guard. Between finding a lock stale and replacing it no other process may do the same, so one at a time
 * does. The guard is an abstract socket (unix(7)), which the kernel releases however its holder ends.
 */
async function takeGuard(dir: string): Promise<Server> {
  const { dev, ino } = statSync(dir)
  const deadline = performance.now() + GUARD_BOUND_MS
  for (;;) {
    const guard = await listen(`\0tollgate-lock-${dev}-${ino}`)
    if (guard !== null) return guard
    if (performance.now() > deadline)
      throw new Error(`${dir}: another process has been locking it for too long`)
    await sleep(GUARD_POLL_MS)
  }
}

function listen(path: string): Promise<Server | null> {
  return new Promise((done, fail) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') done(null)
      else fail(error)
    })
    server.listen({ path, exclusive: true }, () => done(server))
  })
}

function ourIdentity(): { pid: number; start: string } {
  const self = identify(process.pid)
  if (self === null) throw new Error('/proc is not mounted: the data directory cannot be locked without it')
  return self
}
