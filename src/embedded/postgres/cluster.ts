import { chmodSync, chownSync, readdirSync, statSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LOOPBACK } from '../ports.ts'
import { PRIVATE_MODE } from '../private-file.ts'
import { runWithInput, type Unprivileged } from '../programs.ts'

export const USER = 'tollgate'
export const DATABASE = 'tollgate'

/**
 * Creates a cluster in another folder and renames it when complete: a start that was killed half-way leaves nothing
 * that seems complete.
 */
export async function createCluster(wanted: {
  cluster: string
  binaries: string
  user: Unprivileged
  password: string
}): Promise<void> {
  const { cluster, binaries, user } = wanted
  const next = `${cluster}.new`
  const passwordFile = `${cluster}.password`
  await rm(next, { recursive: true, force: true })
  await mkdir(next, { recursive: true, mode: 0o700 })
  await writeFile(passwordFile, wanted.password, { mode: PRIVATE_MODE })
  giveTo(next, user.owner)
  giveTo(passwordFile, user.owner)
  try {
    // The collation is PostgreSQL's own, so that order and case do not hang on the machine's locales.
    const choices = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    const access = ['--auth-local=reject', '--auth-host=scram-sha-256', `--pwfile=${passwordFile}`]
    const initdb = [join(binaries, 'initdb'), '-D', next, '-U', USER, ...choices, ...access]
    await runWithInput([...user.prefix, ...initdb], '')
    const single = [join(binaries, 'postgres'), '--single', '-D', next, 'postgres']
    const output = await runWithInput([...user.prefix, ...single], `CREATE DATABASE ${DATABASE}\n`)
    // The single-user mode ends well whatever became of its statements.
    if (/\b(ERROR|FATAL|PANIC):/.test(output)) throw new Error(`CREATE DATABASE failed: ${output.trim()}`)
    await rename(next, cluster)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

/** Gives files to their owner. Files of another user occur when the service ran as root before, or was copied. */
export function giveTo(path: string, owner: Unprivileged['owner']): void {
  if (owner === null || statSync(path).uid === owner.uid) return
  if (statSync(path).isDirectory()) {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = join(path, entry.name)
      if (entry.isDirectory()) giveTo(child, owner)
      else if (entry.isFile()) chownSync(child, owner.uid, owner.gid)
    }
  }
  // The folder itself comes last: as long as it is not given away, the next start does it again.
  chownSync(path, owner.uid, owner.gid)
}

/** For one gateway, settler and task worker, and commands beside them. */
const CONNECTIONS = 100
/** The most that one more gateway has, with searches and audits. */
const CONNECTIONS_OF_GATEWAY = 10

/** Writes all of postgresql.conf and pg_hba.conf, at every start: neither contains an operator's setting. */
export async function writeSettings(wanted: {
  cluster: string
  owner: Unprivileged['owner']
  port: number
  gateways: number
}): Promise<void> {
  const { cluster, owner, port, gateways } = wanted
  const settings = [
    `listen_addresses = '${LOOPBACK}'`,
    `port = ${port}`,
    `unix_socket_directories = ''`,
    `max_connections = ${CONNECTIONS + CONNECTIONS_OF_GATEWAY * (gateways - 1)}`,
    'shared_buffers = 128MB',
    'fsync = on',
    'full_page_writes = on',
    'synchronous_commit = on',
    'wal_level = minimal',
    'max_wal_senders = 0',
    'max_wal_size = 512MB',
    'min_wal_size = 64MB',
    'checkpoint_timeout = 10min',
    // One process more for each of the others; a ledger reads little from disk.
    'io_method = sync',
    'jit = off',
    'idle_in_transaction_session_timeout = 60s',
    `timezone = 'UTC'`,
    `log_timezone = 'UTC'`,
    'logging_collector = off',
    // Log what ends the server; a failed statement is reported by its sender, and its text may hold secrets.
    'log_min_messages = log',
    'log_min_error_statement = panic',
    'log_error_verbosity = terse',
    'log_checkpoints = off',
    `lc_messages = 'C'`,
  ]
  // The owner, and the role that the service makes for itself.
  const access = [USER, `${USER}_service`].map((role) => `host all ${role} ${LOOPBACK}/32 scram-sha-256`)
  for (const [name, lines] of [['postgresql.conf', settings] as const, ['pg_hba.conf', access] as const]) {
    const path = join(cluster, name)
    await writeFile(path, `${lines.join('\n')}\n`, { mode: PRIVATE_MODE })
    chmodSync(path, PRIVATE_MODE)
    if (owner !== null) chownSync(path, owner.uid, owner.gid)
  }
}
