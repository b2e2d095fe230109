/** PgBouncer in transaction mode, in front of a test's PostgreSQL: the machine's, else Debian's, downloaded once. */
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { fetchDebianPackages } from '../../src/embedded/debian-packages.ts'
import { freePort, LOOPBACK } from '../../src/embedded/ports.ts'
import { findProgram, findUnprivileged, plainEnvironment } from '../../src/embedded/programs.ts'
import type { Teardown } from './engines.ts'
import { Program } from './program.ts'

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
  readonly program: Program
  /** Counts the transactions of all databases so far. */
  transactions(): Promise<number>
}

/** Starts the pooler, and ends it with the test. Connects to the server of the URL. */
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
  const command = [program, '-q', configuration]
  const outputPath = join(folder, 'output.log')
  const pooler = new Program({ name: PROGRAM, command, prefix, env, outputPath, host: LOOPBACK, port })
  t.teardown(() => pooler.kill())
  await pooler.start()
  const resolveUrl = (path: string) => `postgres://${username}@${LOOPBACK}:${port}${path}`
  return {
    url: resolveUrl(pathname),
    program: pooler,
    transactions: () => transactionsAt(resolveUrl('/pgbouncer')),
  }
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
