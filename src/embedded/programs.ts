import { execFile, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Debian installs servers here, and an ordinary user's PATH leaves these out. */
const SERVER_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin']

/** Returns the path of this program, from the PATH or among the machine's servers; null without one. */
export function findProgram(name: string): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  for (const folder of [...folders, ...SERVER_FOLDERS]) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // not in this folder
    }
  }
  return null
}

/** Returns the environment for an engine: without our own variables, which contain secrets. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { LANG: 'C', LC_ALL: 'C', TZ: 'UTC' }
  for (const name of ['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE']) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  return environment
}

/** The way to run a program as another user than root, and the owner of its files then. */
export interface Unprivileged {
  prefix: readonly string[]
  /** Null when that is the user we are. */
  owner: { uid: number; gid: number } | null
}

/** nobody and nogroup exist on every Linux, so that no user has to be created. */
const NOBODY = { uid: 65534, gid: 65534 }
const ROOT = { uid: 0, gid: 0 }

/**
 * Finds a user for PostgreSQL, which refuses to run as root. As root we run it as nobody, with no capability but the
 * one to pass through folders that only root may enter (the checkout or the data directory may be under /root); where
 * that is not possible, inside a user namespace in which root is called nobody.
 * @param probe a program and arguments that succeed when the program could do its work
 * @throws Error when this machine allows none of them
 */
export async function findUnprivileged(probe: readonly string[]): Promise<Unprivileged> {
  if (process.geteuid?.() !== 0) return { prefix: [], owner: null }
  const failures: string[] = []
  for (const way of WAYS_TO_DROP_ROOT) {
    const [program = '', ...args] = [...way.prefix, ...probe]
    try {
      await run(program, args, { env: plainEnvironment() })
      return way
    } catch (error) {
      failures.push(`${way.prefix.join(' ')}: ${error instanceof Error ? error.message.trim() : error}`)
    }
  }
  throw new Error(
    `PostgreSQL does not run as root, and it could not be run as nobody either. Run the service as an ` +
      `ordinary user, or set DATABASE_URL. Tried:\n${failures.join('\n')}`,
  )
}

const AS_NOBODY = ['setpriv', `--reuid=${NOBODY.uid}`, `--regid=${NOBODY.gid}`, '--clear-groups']

/**
 * Returns the arguments that keep a capability. Without the secure bit access(2), by which PostgreSQL checks its
 * binaries, disregards capabilities.
 */
function keepCapability(capability: string): readonly string[] {
  return [`--inh-caps=+${capability}`, `--ambient-caps=+${capability}`, '--securebits=+no_setuid_fixup']
}

/** The one that gives away least comes first; containers leave out the one or the other. */
const WAYS_TO_DROP_ROOT: readonly Unprivileged[] = [
  { prefix: [...AS_NOBODY, ...keepCapability('dac_read_search')], owner: NOBODY },
  { prefix: [...AS_NOBODY, ...keepCapability('dac_override')], owner: NOBODY },
  { prefix: ['unshare', '--user', `--map-user=${NOBODY.uid}`], owner: ROOT },
  { prefix: AS_NOBODY, owner: NOBODY },
]

/**
 * Returns the command prefix by which the kernel sends the command this signal when we die, for any reason. Empty
 * where setpriv (util-linux) is missing: then the next start ends the processes of a killed run. The prefix must come
 * last, because a change of user clears the setting.
 */
export function endWithUs(signal: NodeJS.Signals): readonly string[] {
  const setpriv = findProgram('setpriv')
  return setpriv === null ? [] : [setpriv, '--pdeathsig', signal.replace(/^SIG/, '')]
}

/**
 * The way to run a module as an engine. V8 would give young objects up to 48 MB and keep them; an engine has few objects,
 * and they are no more than it needs.
 */
export const runModule = (path: string): readonly string[] => [
  ...endWithUs('SIGTERM'),
  process.execPath,
  '--max-semi-space-size=2',
  '--v8-pool-size=1',
  path,
]

/** Runs a program to its end with this text on its standard input; returns its output. */
export function runWithInput(command: readonly string[], input: string): Promise<string> {
  const [program = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: plainEnvironment(), stdio: 'pipe' })
    let output = ''
    const collect = (chunk: Buffer) => {
      output += chunk.toString('utf8')
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.stdin.on('error', () => {
      // the program ended without reading: its exit code shows the reason
    })
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output)
      else reject(new Error(`${program} ended with ${signal ?? code}: ${output.trim()}`))
    })
    child.stdin.end(input)
  })
}
