/** PostgreSQL with a streaming standby: the migrated cluster of the tests, and a copy of it that follows. */
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, LOOPBACK } from '../../../src/embedded/ports.ts'
import { DATABASE, giveTo, USER } from '../../../src/embedded/postgres/cluster.ts'
import { findBinaries } from '../../../src/embedded/postgres/postgres.ts'
import { passwordFor } from '../../../src/embedded/private-file.ts'
import { findUnprivileged, type Unprivileged } from '../../../src/embedded/programs.ts'
import { lendCluster } from '../../support/clusters.ts'
import { CACHE, type Teardown, testDataDir } from '../../support/engines.ts'
import { Program } from '../../support/program.ts'

const run = promisify(execFile)

export interface PostgresPair {
  readonly primary: Program
  readonly standby: Program
  readonly url: string
}

/** Starts both; they end with the test. */
export async function startPostgresPair(t: Teardown, logs: string): Promise<PostgresPair> {
  const dataDir = await testDataDir(t)
  t.teardown(await lendCluster(CACHE, dataDir))
  const cluster = join(dataDir, 'postgres')
  const copy = join(dataDir, 'standby')
  const [port, standbyPort] = [await freePort(), await freePort()]
  const password = passwordFor('postgres', dataDir)
  const user = await findUnprivileged([join(findBinaries(), 'initdb'), '--show', '-D', cluster])
  const server = (name: string, folder: string, at: number) =>
    new Program({
      name,
      prefix: user.prefix,
      command: [join(findBinaries(), 'postgres'), '-D', folder],
      outputPath: join(logs, `${name}.log`),
      host: LOOPBACK,
      port: at,
    })
  const primary = server('postgres', cluster, port)
  const standby = server('standby', copy, standbyPort)
  t.teardown(() => Promise.all([primary.kill(), standby.kill()]))
  giveTo(cluster, user.owner)
  configure(cluster, user, port, [])
  // The log of changes that the template ends with is one that no standby can follow.
  await primary.start()
  await primary.stop('SIGINT')
  await run('cp', ['-a', '--reflink=auto', cluster, copy])
  const primaryInfo = `host=${LOOPBACK} port=${port} user=${USER} password=${password}`
  configure(copy, user, standbyPort, [`primary_conninfo = '${primaryInfo}'`])
  writeFileSync(join(copy, 'standby.signal'), '')
  await Promise.all([primary.start(), standby.start()])
  return { primary, standby, url: `postgres://${USER}:${password}@${LOOPBACK}:${port}/${DATABASE}` }
}

function configure(cluster: string, user: Unprivileged, port: number, more: readonly string[]): void {
  const settings = [
    `listen_addresses = '${LOOPBACK}'`,
    `port = ${port}`,
    `unix_socket_directories = ''`,
    'max_connections = 100',
    'shared_buffers = 64MB',
    'wal_level = replica',
    'max_wal_senders = 4',
    'wal_keep_size = 1GB',
    'hot_standby = on',
    'io_method = sync',
    'jit = off',
    `timezone = 'UTC'`,
    `log_timezone = 'UTC'`,
    `log_line_prefix = '%m %a '`,
    `lc_messages = 'C'`,
    ...more,
  ]
  const access = ['all', 'replication'].map((what) => `host ${what} all ${LOOPBACK}/32 scram-sha-256`)
  for (const [name, lines] of [['postgresql.conf', settings] as const, ['pg_hba.conf', access] as const]) {
    const path = join(cluster, name)
    writeFileSync(path, `${lines.join('\n')}\n`)
    chmodSync(path, 0o600)
    if (user.owner !== null) chownSync(path, user.owner.uid, user.owner.gid)
  }
}
