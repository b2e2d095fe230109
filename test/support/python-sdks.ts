/** Packages of Python, the vendors' SDKs among them, installed once into a cache. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** The vendors' own. */
export const PYTHON_SDKS = ['openai==3.57.0', 'anthropic==2.14.0', 'google-genai==3.6.1']
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate-python/', import.meta.url))
const INSTALL_BOUND_MS = 300_000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** Returns the folder of the packages, or why there is none: without Python and pip, or without a registry. */
export async function installPython(
  packages: readonly string[] = PYTHON_SDKS,
): Promise<{ readonly folder: string } | { readonly reason: string }> {
  try {
    const { stdout: version } = await run('python3', ['-c', 'import sys; print(sys.version)'])
    const name = createHash('sha256').update(`${version}${packages}`).digest('hex').slice(0, 16)
    const folder = join(CACHE, name)
    if (existsSync(folder)) return { folder }
    await mkdir(CACHE, { recursive: true })
    const making = await mkdtemp(join(CACHE, 'making-'))
    const install = ['-m', 'pip', 'install', '--quiet', '--target', making, ...packages]
    await run('python3', install, { timeout: INSTALL_BOUND_MS, maxBuffer: MAX_OUTPUT_BYTES })
    // Another test may have been first.
    await rename(making, folder).catch(() => rm(making, { recursive: true }))
    return { folder }
  } catch (error) {
    const [line] = (error as Error).message.split('\n')
    return { reason: `the Python packages cannot be installed: ${line}` }
  }
}

/** Runs a script with the SDKs, and returns the JSON that it prints. */
export async function runPython(folder: string, script: URL, input: object): Promise<unknown> {
  const env = { ...process.env, PYTHONPATH: folder }
  const { stdout } = await run('python3', [fileURLToPath(script), JSON.stringify(input)], {
    env,
    maxBuffer: MAX_OUTPUT_BYTES,
  })
  return JSON.parse(stdout)
}
