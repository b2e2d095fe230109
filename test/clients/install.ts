/** Installs the clients, at their versions, into a cache. */
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPackages } from '../support/npm-packages.ts'
import { installPython } from '../support/python-sdks.ts'
import type { Client } from './clients.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const MANIFEST = 'package.json'
const AGENTS_MANIFEST = 'agents.json'
const DRIVERS = 'drivers'
/** Agents whose own script puts their program in its place. */
const BUILT = ['@anthropic-ai/claude-code', 'opencode-ai']

/** How a client is run. */
export interface Program {
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly version: string
}

const installs = new Map<string, Promise<unknown>>()

/** Returns what `install` does, once: what failed for one client is not tried again for each of the others. */
function once<T>(name: string, install: () => Promise<T>): Promise<T> {
  const installed = (installs.get(name) as Promise<T> | undefined) ?? install()
  installs.set(name, installed)
  return installed
}

/** Installs a client and what it needs. Returns how to run it, or why it cannot be. @throws Error of npm */
export async function installClient(client: Client): Promise<Program | { readonly reason: string }> {
  const own = client.agent ? AGENTS_MANIFEST : MANIFEST
  const drivers = await once(own, () => installDrivers(own))
  const driver = join(drivers, client.driver)
  const { python } = client
  if (python === undefined) {
    const installed = join(drivers, '../node_modules', client.package, MANIFEST)
    const { version } = JSON.parse(readFileSync(installed, 'utf8'))
    return { command: [process.execPath, driver], env: process.env, version }
  }
  const installed = await once(String(python), () => installPython(python))
  if ('reason' in installed) return installed
  const pin = python.find((one) => one.startsWith(`${client.package}==`))!
  const env = { ...process.env, PYTHONPATH: installed.folder }
  const command = [driver.endsWith('.py') ? 'python3' : process.execPath, driver]
  return { command, env, version: pin.split('==')[1]! }
}

/** Installs what the drivers need. Returns their folder, beside which they find it. */
async function installDrivers(manifest: string): Promise<string> {
  const folder = join(await installPackages(join(HERE, manifest), BUILT), DRIVERS)
  cpSync(join(HERE, DRIVERS), folder, { recursive: true })
  return folder
}
