import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../../src/embedded/programs.ts'

/**
 * Programs that are not in the repository. The bench downloads them on first use into a cache folder that `npm install`
 * and git ignore. It skips their rows on a machine that cannot download them.
 */

const FETCH_LIMIT_MS = 600_000

/** Thrown when a subject cannot take part here; its row is skipped with this reason. */
export class Unavailable extends Error {}

const run = (command: string, args: string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe', timeout: FETCH_LIMIT_MS })

const readReason = (error: unknown): string => {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr?.trim() || message).split('\n').at(-1)!
}

/** Returns the first line of `nginx -v`, which it writes to stderr; null when it does not run (a library is missing). */
export const nginxVersion = (binary: string): string | null => {
  try {
    const text = run('sh', ['-c', '"$0" -v 2>&1', binary], '/')
    return text.trim().replace(/^nginx version: nginx\//, '')
  } catch {
    return null
  }
}

/**
 * Downloads and unpacks Debian's nginx without root. apt gets separate state folders, so that the machine's package
 * lists and locks stay untouched.
 */
const fetchNginx = (folder: string): void => {
  for (const sub of ['lists/partial', 'archives/partial', 'package'])
    mkdirSync(join(folder, sub), { recursive: true })
  const settings = [
    `Dir::State::Lists=${join(folder, 'lists')}`,
    `Dir::Cache=${folder}`,
    `Dir::Cache::archives=${join(folder, 'archives')}`,
    'Dir::State::status=/var/lib/dpkg/status',
    'APT::Sandbox::User=',
    'Debug::NoLocking=1',
  ].flatMap((setting) => ['-o', setting])
  const inPackage = join(folder, 'package')
  run('apt-get', [...settings, '-q', 'update'], inPackage)
  run('apt-get', [...settings, '-q', 'download', 'nginx'], inPackage)
  const archive = readdirSync(inPackage).find((name) => name.endsWith('.deb'))
  if (!archive) throw new Error('apt-get downloaded no package')
  run('dpkg-deb', ['-x', archive, 'root'], inPackage)
}

/** Returns the path of an nginx that runs: on the PATH, in the cache, or from Debian. Throws {@link Unavailable}. */
export const findNginx = (cache: string): string => {
  const installed = findProgram('nginx')
  if (installed && nginxVersion(installed)) return installed
  const folder = join(cache, 'nginx')
  const binary = join(folder, 'package/root/usr/sbin/nginx')
  if (!existsSync(binary)) {
    if (!findProgram('apt-get') || !findProgram('dpkg-deb'))
      throw new Unavailable('nginx is not on the PATH, and there is no apt-get to fetch it with')
    try {
      fetchNginx(folder)
    } catch (error) {
      throw new Unavailable(`nginx is not on the PATH and could not be fetched: ${readReason(error)}`)
    }
  }
  if (!nginxVersion(binary)) throw new Unavailable('the nginx fetched from Debian does not run here')
  return binary
}

interface InstalledProgram {
  folder: string
  program: string
}

/**
 * Installs a PyPI package with its extra into a separate virtual environment in the cache folder, unless it is there, and
 * returns its program. Throws {@link Unavailable}.
 */
export const findPythonPackage = (
  cache: string,
  name: string,
  version: string,
  extra: string,
): InstalledProgram => {
  if (!findProgram('python3')) throw new Unavailable(`${name} needs Python 3, which is not on the PATH`)
  const folder = join(cache, `${name}-${version}`)
  const found = { folder, program: join(folder, 'bin', name) }
  if (existsSync(found.program)) return found
  try {
    mkdirSync(cache, { recursive: true })
    run('python3', ['-m', 'venv', folder], cache)
    run(join(folder, 'bin/pip'), ['install', '--quiet', `${name}[${extra}]==${version}`], cache)
  } catch (error) {
    throw new Unavailable(`${name} could not be installed: ${readReason(error)}`)
  }
  return found
}

interface InstalledPackage {
  folder: string
  version: string
}

/**
 * Returns an npm package in the cache folder, and installs it there on first use. `overrides` pins versions of its
 * dependencies, as in package.json. Throws {@link Unavailable}.
 */
export const findPackage = (
  cache: string,
  name: string,
  version: string,
  overrides: Record<string, string>,
): InstalledPackage => {
  const prefix = join(cache, `${name.replace('/', '-').replace('@', '')}-${version}`)
  const folder = join(prefix, 'node_modules', name)
  if (!existsSync(join(folder, 'package.json'))) {
    mkdirSync(prefix, { recursive: true })
    writeFileSync(join(prefix, 'package.json'), JSON.stringify({ private: true, overrides }))
    const args = ['install', '--prefix', prefix, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
    try {
      run('npm', [...args, `${name}@${version}`], prefix)
    } catch (error) {
      throw new Unavailable(`${name} could not be installed: ${readReason(error)}`)
    }
  }
  return { folder, version }
}
