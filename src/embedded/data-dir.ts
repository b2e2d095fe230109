import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { PRIVATE_MODE, readPrivateJson, writePrivateFile } from './private-file.ts'
import { identify, isAlive, sendSignal } from './process-identity.ts'
import { findProgram } from './programs.ts'

const Holder = z.object({
  pid: z.int().positive(),
  start: z.string(),
  /** The pid counts in it. */
  pid_namespace: z.string(),
  host: z.string(),
  since: z.iso.datetime(),
})
type Holder = z.infer<typeof Holder>

const RunRecord = z.object({
  pid: z.int().positive(),
  /** Address on this machine; null for a service without a gateway. */
  base_url: z.url().nullable(),
  /** Address of the metrics for operators; null without a listener for them. */
  admin_url: z.url().nullable(),
  /** The key of the first account, where the service made it. */
  first_key: z.string().nullable(),
  /** Signs in the first operator, once and within 15 minutes. */
  sign_in_url: z.string().nullable(),
  database_url: z.string(),
  nats_url: z.string(),
  clickhouse_url: z.string(),
  simulator_url: z.string().nullable(),
  /** The configuration in use, absolute. */
  config_file: z.string(),
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
  /** Null where the holder has not said who it is. */
  readonly pid: number | null
  /** False: it runs in another container, or has been killed. */
  readonly isVisible: boolean

  constructor(dir: string, holder: Holder | null, baseUrl: string | null) {
    super(
      `${dir} is in use${describeHolder(holder, baseUrl)}, or choose another folder with TOLLGATE_DATA_DIR.`,
    )
    this.name = 'DataDirInUse'
    this.pid = holder?.pid ?? null
    this.isVisible = holder !== null && isAlive(holder)
  }
}

function describeHolder(holder: Holder | null, baseUrl: string | null): string {
  if (holder === null)
    return '. The lock names no holder: list the processes that have it with `lslocks`. Stop them'
  const { pid, host, since } = holder
  if (isAlive(holder)) {
    const at = baseUrl === null ? '' : ` and answers at ${baseUrl}`
    return `: process ${pid} has held it since ${since}${at}. Stop that one`
  }
  return (
    ` by a service that cannot be seen from here: process ${pid} on ${host} has held it since ${since}. ` +
    'It runs in another container, or it has just been killed. Stop it and try again'
  )
}

export interface DataDirLock {
  /** Absolute. */
  readonly dir: string
  /** The open file that is locked. A child that inherits it keeps the directory locked as long as it lives. */
  readonly fd: number
  /** The service before this one was killed: processes of it may be ending just now. */
  readonly wasKilled: boolean
  /** Writes `run.json`, which `release` removes. */
  writeRunFile(address: RunAddress): void
  /** Notes the configuration file for `readLastConfig`; null for the demonstration. */
  rememberConfig(file: string | null): void
  release(): void
}

/** A service that was killed leaves processes that end within this time. */
const PREDECESSOR_BOUND_MS = 10_000
const PREDECESSOR_POLL_MS = 50
/** Processes of a killed service that have not ended by then are killed, and given this time. */
const KILLED_BOUND_MS = 5_000

/**
 * Makes the data directory, for its owner only, and holds it until `release` or until this process and all children
 * that inherit `fd` have ended. The lock is flock(2): the kernel knows its holder in every PID namespace, and frees it
 * however that ends. What a killed service leaves ends within the bound.
 *
 * @throws DataDirInUse while another service holds it
 */
export async function lockDataDir(path: string, boundMs = PREDECESSOR_BOUND_MS): Promise<DataDirLock> {
  const dir = resolve(path)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const file = join(dir, 'lock')
  const fd = openSync(file, OPEN_OR_CREATE, PRIVATE_MODE)
  try {
    await takeLock(dir, fd, boundMs)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  const wasKilled = readFileSync(file, 'utf8') !== ''
  writeHolder(fd, `${JSON.stringify(ourselves())}\n`)
  const runFile = join(dir, 'run.json')
  let released = false
  const release = () => {
    // At a second call the lock may be another process's.
    if (released) return
    released = true
    rmSync(runFile, { force: true })
    writeHolder(fd, '')
    closeSync(fd)
    process.off('exit', release)
  }
  process.once('exit', release)
  return {
    dir,
    fd,
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

const OPEN_OR_CREATE = constants.O_RDWR | constants.O_CREAT

/** Replaces what the lock file says. The file itself stays: of two files of one name both could be locked. */
function writeHolder(fd: number, text: string): void {
  ftruncateSync(fd)
  writeSync(fd, text, 0)
}

async function takeLock(dir: string, fd: number, boundMs: number): Promise<void> {
  let deadline = performance.now() + boundMs
  let mayKill = true
  while (!lockOpenFile(dir, fd)) {
    const holder = readPrivateJson(join(dir, 'lock'), Holder)
    const isOver = performance.now() > deadline
    if ((holder !== null && isAlive(holder)) || (isOver && !mayKill))
      throw new DataDirInUse(dir, holder, readRunning(dir)?.base_url ?? null)
    if (isOver) {
      mayKill = false
      if (holder?.pid_namespace === pidNamespace() && killEngines(dir)) deadline += KILLED_BOUND_MS
    }
    await sleep(PREDECESSOR_POLL_MS)
  }
}

/** The one answer of `flock --nonblock` without a word: another open file has the lock. */
const IS_LOCKED = 1

/**
 * Locks an open file with flock(2), for which Node.js has no function: util-linux `flock` inherits the file, and its
 * lock stays when that program has ended. Returns false while another open file has the lock.
 * @throws Error saying why there can be no lock
 */
function lockOpenFile(dir: string, fd: number): boolean {
  const program = findProgram('flock')
  if (program === null)
    throw new Error(`${dir} cannot be locked: the program flock is missing. Install util-linux.`)
  const { status, stderr, error } = spawnSync(program, ['-n', '-x', String(INHERITED_FD)], {
    stdio: ['ignore', 'ignore', 'pipe', fd],
    encoding: 'utf8',
  })
  if (status === 0) return true
  const problem = error?.message ?? stderr.trim()
  if (status === IS_LOCKED && problem === '') return false
  throw new Error(
    `${dir} cannot be locked: ${problem}. A data directory needs a file system with locks (flock): ` +
      'choose another one with TOLLGATE_DATA_DIR.',
  )
}

const INHERITED_FD = 3

const EngineProcess = z.object({ process: z.object({ pid: z.int().positive(), start: z.string() }) })

/** Kills the engines of a killed service of this PID namespace. Returns whether there was one. */
function killEngines(dir: string): boolean {
  const folder = join(dir, 'engines')
  const records = existsSync(folder) ? readdirSync(folder) : []
  const killed = records.filter((name) => {
    const record = readPrivateJson(join(folder, name), EngineProcess)
    return record !== null && sendSignal(record.process, 'SIGKILL')
  })
  return killed.length > 0
}

const pidNamespace = (): string => readlinkSync('/proc/self/ns/pid')

const ourselves = (): Holder => ({
  ...ourIdentity(),
  pid_namespace: pidNamespace(),
  host: hostname(),
  since: new Date().toISOString(),
})

function ourIdentity(): { pid: number; start: string } {
  const self = identify(process.pid)
  if (self === null) throw new Error('/proc is not mounted: the data directory cannot be locked without it')
  return self
}
