/** Installs the packages for development where one is missing or of another version than the lock file says. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const WANTED = join(ROOT, 'package-lock.json')
/** Where npm notes what it has installed. */
const INSTALLED = join(ROOT, 'node_modules/.package-lock.json')

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly optional?: boolean }>>
}

const readLock = (path: string): Lock =>
  existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { packages: {} }

const { packages } = readLock(INSTALLED)
const missing = Object.entries(readLock(WANTED).packages).find(
  ([path, { version, optional }]) =>
    path.startsWith('node_modules/') &&
    optional !== true &&
    (packages[path]?.version !== version || !existsSync(join(ROOT, path))),
)
if (missing !== undefined) {
  process.stderr.write('Installing the packages for development ...\n')
  execFileSync('npm', ['install', '--include=dev', '--no-save'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
