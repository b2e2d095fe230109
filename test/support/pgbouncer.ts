/** PgBouncer in transaction mode, in front of a test's PostgreSQL: the machine's, else Debian's, downloaded once. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { fetchDebianPackages } from '../../src/embedded/debian-packages.ts'
import { freePort, LOOPBACK } from '../../src/embedded/ports.ts'
import { endWithUs, findProgram, findUnprivileged, plainEnvironment } from '../../src/embedded/programs.ts'
import type { Teardown } from './engines.ts'
import { eventually } from './eventually.ts'

const PROGRAM = 'pgbouncer'
/** With it come the libraries that a machine may lack. */
const PACKAGES = [PROGRAM, 'libc-ares2', 'libevent-2.1-7']
const FETCH_BOUND_MS = 120_000
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate/pgbouncer', import.meta.url))
const FETCHED = join(CACHE, 'usr', 'sbin', PROGRAM)
const LIBRARIES = join(CACHE, 'usr', 'lib', 'x86_64-linux-gnu')
/** Fewer than clients have connections: statements of one client go over several sessions. */
const SERVER_CONNECTIONS = 5
const MAX_CLIENTS = 200

export interface PgBouncer {
  /** Leads to the database through the pooler. */
  readonly url: string
  /** Counts the transactions of all databases so far. */
  transactions(): Promise<number>
}

/** Starts the pooler, and ends it with the test. */
export async function startPgBouncer(t: Teardown, databaseUrl: string): Promise<PgBouncer> {
  const program = await findPgBouncer()
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-pgbouncer-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { username, password, host, pathname } = new URL(databaseUrl)
  const [hostname, serverPort] = host.split(':')
  const port = await freePort()
  const configuration = join(folder, 'pgbouncer.ini')
  const server = `host=${hostname} port=${serverPort} user=${username} password=${decodeURIComponent(password)}`
  writeFileSync(
    configuration,
    `[databases]
* = ${server}
[pgbouncer]
listen_addr = ${LOOPBACK}
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
stats_users = ${username}
default_pool_size = ${SERVER_CONNECTIONS}
max_client_conn = ${MAX_CLIENTS}
`,
    { mode: 0o600 },
  )
  const env = { ...plainEnvironment(), LD_LIBRARY_PATH: LIBRARIES }
  const { prefix, owner } = await findUnprivileged([
    'env',
    `LD_LIBRARY_PATH=${LIBRARIES}`,
    program,
    '--version',
  ])
  if (owner !== null) for (const path of [folder, configuration]) chownSync(path, owner.uid, owner.gid)
  const [first = '', ...args] = [...prefix, ...endWithUs('SIGKILL'), program, '-q', configuration]
  const child = spawn(first, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (bytes) => {
    said += bytes
  })
  t.teardown(() => end(child))
  await eventually('the pooler answers', async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}: ${said}`)
    return (await accepts(port)) ? true : undefined
  })
  const urlOf = (path: string) => `postgres://${username}@${LOOPBACK}:${port}${path}`
  return { url: urlOf(pathname), transactions: () => transactionsAt(urlOf('/pgbouncer')) }
}

async function transactionsAt(url: string): Promise<number> {
  const sql = postgres(url, { max: 1, fetch_types: false })
  try {
    const rows = await sql.unsafe<{ total_xact_count: string }[]>('SHOW STATS').simple()
    return rows.reduce((sum, { total_xact_count }) => sum + Number(total_xact_count), 0)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK)
    const over = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.on('connect', () => over(true))
    socket.on('error', () => over(false))
  })
}

async function findPgBouncer(): Promise<string> {
  const installed = findProgram(PROGRAM)
  if (installed !== null) return installed
  if (!existsSync(FETCHED))
    await fetchDebianPackages({
      words: ['download', ...PACKAGES],
      folder: CACHE,
      boundMs: FETCH_BOUND_MS,
      isUsable: async () => existsSync(FETCHED),
    })
  return FETCHED
}
