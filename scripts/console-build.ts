/**
 * Builds the console and compresses its files. Where the packages for development are not installed, brings those of the
 * console for as long as it builds.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const CONSOLE = join(ROOT, 'console')
const PACKAGES = join(ROOT, 'node_modules')
const VITE = join('vite', 'bin', 'vite.js')
const COMPRESSIBLE = /\.(?:html|js|css|svg)$/

const build = (vite: string): void => {
  execFileSync(process.execPath, [vite, 'build', CONSOLE, '--logLevel', 'warn'], { stdio: 'inherit' })
}

/** Installs what the lock file says of the console's package beside the service's packages, and removes it again. */
function buildWithOwnPackages(): void {
  const folder = join(PACKAGES, '.cache', 'tollgate', 'console-packages')
  const installed = join(folder, 'node_modules')
  const linked = join(CONSOLE, 'node_modules')
  const remove = () => {
    for (const path of [linked, folder]) rmSync(path, { recursive: true, force: true })
  }
  remove()
  for (const name of [
    'package.json',
    'package-lock.json',
    '.npmrc',
    'console/package.json',
    'simulator/package.json',
  ])
    cpSync(join(ROOT, name), join(folder, name))
  const words = ['install', '--workspace=console', '--include=dev', '--no-save', '--ignore-scripts']
  try {
    execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
    symlinkSync(installed, linked)
    build(join(installed, VITE))
  } finally {
    remove()
  }
}

const vite = join(PACKAGES, VITE)
if (existsSync(vite)) build(vite)
else buildWithOwnPackages()
const built = join(CONSOLE, 'dist')
for (const name of readdirSync(built, { recursive: true, encoding: 'utf8' })) {
  if (!COMPRESSIBLE.test(name)) continue
  const path = join(built, name)
  const bytes = readFileSync(path)
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  const compressed = brotliCompressSync(bytes, { params })
  if (compressed.length < bytes.length) writeFileSync(`${path}.br`, compressed)
}
