import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { fetchDebianPackages } from '../debian-packages.ts'
import { findProgram, plainEnvironment } from '../programs.ts'

const run = promisify(execFile)

/** The first version with the features that our streams and consumers use. */
const OLDEST = { major: 2, minor: 9 }
const FETCH_BOUND_MS = 120_000
const PACKAGE = 'nats-server'

interface NatsBinary {
  path: string
  /** Whether the configuration knows `sync_interval` (2.10 and later). */
  hasSyncInterval: boolean
}

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))
const CACHE = join(CHECKOUT, 'node_modules', '.cache', 'tollgate', PACKAGE)

/**
 * Returns the folders of a downloaded server: with the installation, so that all data directories share it, else (the
 * checkout belongs to another user) in the data directory.
 */
export function natsFolders(dataDir: string): readonly string[] {
  return isWritable(join(CHECKOUT, 'node_modules')) ? [CACHE] : [CACHE, join(dataDir, PACKAGE)]
}

/** For the time of installation, when there is no data directory yet. */
export const INSTALLED_NATS_FOLDERS: readonly string[] = [CACHE]

/**
 * Returns the machine's nats-server when it is recent enough, else one of these folders', else Debian's, downloaded
 * once into the last of them without being root.
 * @throws Error that names what to install when none exists and none can be downloaded
 */
export async function findNatsServer(folders: readonly string[]): Promise<NatsBinary> {
  for (const path of [findProgram(PACKAGE), ...folders.map(findBinary)]) {
    const found = path === null ? null : await inspect(path)
    if (found !== null) return found
  }
  return fetchNatsServer(folders.at(-1) ?? CACHE)
}

function findBinary(folder: string): string {
  return join(folder, 'usr', 'sbin', PACKAGE)
}

async function inspect(path: string): Promise<NatsBinary | null> {
  try {
    const { stdout } = await run(path, ['--version'], { env: plainEnvironment() })
    const [, major = 0, minor = 0] = (/v(\d+)\.(\d+)\./.exec(stdout) ?? []).map(Number)
    if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) return null
    return { path, hasSyncInterval: major > 2 || minor >= 10 }
  } catch {
    return null
  }
}

/** Downloads Debian's package: it needs no root and changes nothing on the machine. */
async function fetchNatsServer(folder: string): Promise<NatsBinary> {
  try {
    await fetchDebianPackages({
      words: ['download', PACKAGE],
      folder,
      boundMs: FETCH_BOUND_MS,
      isUsable: async () => (await inspect(findBinary(folder))) !== null,
    })
    const found = await inspect(findBinary(folder))
    if (found === null) throw new Error(`${findBinary(folder)} does not run, or is older than 2.9`)
    return found
  } catch (error) {
    throw new Error(
      `there is no nats-server 2.9 or later on the PATH, and fetching Debian's package failed. ` +
        `Install nats-server, or set NATS_URL. ${error instanceof Error ? error.message.trim() : error}`,
      { cause: error },
    )
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
