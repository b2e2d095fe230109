/** Packages that are no dependencies, installed once into a cache. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate-packages/', import.meta.url))
const INSTALL_BOUND_MS = 600_000
const INSTALL = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts']

/** Installs the packages of a manifest, and runs the scripts of those that are `built`. Returns their folder. */
export async function installPackages(manifest: string, built: readonly string[] = []): Promise<string> {
  const text = readFileSync(manifest, 'utf8')
  const folder = join(CACHE, createHash('sha256').update(`${text}${built}`).digest('hex').slice(0, 16))
  if (existsSync(folder)) return folder
  mkdirSync(CACHE, { recursive: true })
  const making = mkdtempSync(join(CACHE, 'making-'))
  try {
    cpSync(manifest, join(making, 'package.json'))
    const options = { cwd: making, timeout: INSTALL_BOUND_MS }
    await run('npm', INSTALL, options)
    const { dependencies } = JSON.parse(text)
    const own = built.filter((name) => Object.hasOwn(dependencies, name))
    if (own.length > 0) await run('npm', ['rebuild', ...own], options)
    renameSync(making, folder)
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return folder
}
