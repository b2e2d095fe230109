/** Installs the clients, at their versions, into a cache. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installPython } from '../support/python-sdks.ts'
import type { Client } from './clients.ts'

const run = promisify(execFile)
const HERE = fileURLToPath(new URL('.', import.meta.url))
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate-clients/', import.meta.url))
const MANIFEST = 'package.json'
const AGENTS_MANIFEST = 'agents.json'
const DRIVERS = 'drivers'
const INSTALL_BOUND_MS = 600_000
const INSTALL = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts']
/** Agents whose own script puts their program in its place. */
const BUILT = ['@anthropic-ai/claude-code', 'opencode-ai']

/** How a client is run. */
export interface Program {
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly version: string
}

/** Installs a client and what it needs. Returns how to run it, or why it cannot be. */
export async function installClient(client: Client): Promise<Program | { readonly reason: string }> {
  const drivers = await installPackages(client.agent ? AGENTS_MANIFEST : MANIFEST)
  const driver = join(drivers, client.driver)
  const { python } = client
  if (python === undefined) {
    const manifest = join(drivers, '../node_modules', client.package, MANIFEST)
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'))
    return { command: [process.execPath, driver], env: process.env, version }
  }
  const installed = await installPython(python)
  if ('reason' in installed) return installed
  const pin = python.find((one) => one.startsWith(`${client.package}==`))!
  const env = { ...process.env, PYTHONPATH: installed.folder }
  const command = [driver.endsWith('.py') ? 'python3' : process.execPath, driver]
  return { command, env, version: pin.split('==')[1]! }
}

/** Installs the packages of a manifest. Returns the folder of the drivers, beside which they find them. */
async function installPackages(name: string): Promise<string> {
  const manifest = readFileSync(join(HERE, name))
  const folder = join(CACHE, createHash('sha256').update(`${manifest}${BUILT}`).digest('hex').slice(0, 16))
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true })
    const making = mkdtempSync(join(CACHE, 'making-'))
    try {
      cpSync(join(HERE, name), join(making, MANIFEST))
      const options = { cwd: making, timeout: INSTALL_BOUND_MS }
      await run('npm', INSTALL, options)
      if (name === AGENTS_MANIFEST) await run('npm', ['rebuild', ...BUILT], options)
      renameSync(making, folder)
    } finally {
      rmSync(making, { recursive: true, force: true })
    }
  }
  const drivers = join(folder, DRIVERS)
  cpSync(join(HERE, DRIVERS), drivers, { recursive: true })
  return drivers
}
