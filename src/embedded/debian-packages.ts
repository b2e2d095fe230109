/** Debian's packages without root: downloaded by apt with separate lists and cache, unpacked into a folder. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

interface Wanted {
  /** Arguments of apt-get that leave archives, such as `['download', 'nats-server']`. */
  readonly words: readonly string[]
  readonly folder: string
  readonly boundMs: number
  /** Whether the folder holds what is wanted. */
  isUsable(): Promise<boolean>
}

/**
 * Downloads packages and unpacks them into `folder`; changes nothing else on the machine.
 * @throws Error that says what apt, dpkg or the file system refused
 */
export async function fetchDebianPackages({ words, folder, boundMs, isUsable }: Wanted): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  const work = await mkdtemp(`${folder}.`)
  try {
    await download(work, words, boundMs)
    const archives = (await readdir(work, { recursive: true })).filter((name) => name.endsWith('.deb'))
    if (archives.length === 0) throw new Error('apt-get downloaded nothing')
    const root = join(work, 'root')
    await mkdir(root)
    for (const archive of archives) await run('dpkg-deb', ['-x', join(work, archive), root])
    await putInPlace(root, folder, isUsable)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function download(work: string, words: readonly string[], timeout: number): Promise<void> {
  await mkdir(join(work, 'lists', 'partial'), { recursive: true })
  await mkdir(join(work, 'cache', 'archives', 'partial'), { recursive: true })
  const options = [
    `Dir::State::Lists=${join(work, 'lists')}`,
    `Dir::Cache=${join(work, 'cache')}`,
    'Dir::State::status=/var/lib/dpkg/status',
    'APT::Sandbox::User=',
    'Debug::NoLocking=1',
    // Only the names and versions of packages: translations are most of what would be transferred.
    'Acquire::Languages=none',
  ].flatMap((option) => ['-o', option])
  const bounded = { cwd: work, timeout, env: { ...process.env, LC_ALL: 'C' } }
  await run('apt-get', [...options, '-qq', 'update'], bounded)
  await run('apt-get', [...options, '-qq', ...words], bounded)
}

/**
 * Moves the download into place. Two processes may download at once: the first one is used, the other deletes its own.
 */
async function putInPlace(from: string, to: string, isUsable: () => Promise<boolean>): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if (await isUsable()) return
    await rm(to, { recursive: true, force: true })
    await rename(from, to).catch(() => {
      throw error
    })
  }
}
