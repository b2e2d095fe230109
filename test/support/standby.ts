/** A PostgreSQL primary and a streaming standby of it, which can be promoted. */
import { execFile } from 'node:child_process'
import { appendFileSync, chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { freePort, LOOPBACK } from '../../src/embedded/ports.ts'
import { DATABASE, USER } from '../../src/embedded/postgres/cluster.ts'
import { findBinaries } from '../../src/embedded/postgres/postgres.ts'
import { readPassword } from '../../src/embedded/private-file.ts'
import { findUnprivileged } from '../../src/embedded/programs.ts'
import { lendCluster } from './clusters.ts'
import { CACHE, type Teardown, testDataDir } from './engines.ts'
import { eventually } from './eventually.ts'
import { Program } from './program.ts'

/** The names of the servers in the cluster, by which a synchronous standby is known. */
export type ServerName = 'one' | 'two'

export interface PostgresPair {
  /** `one` is the primary at first. */
  readonly servers: Readonly<Record<ServerName, Program>>
  /** Leads to one server. */
  url(name: ServerName): string
  /** Names both servers. */
  readonly bothUrl: string
  /** Makes the standby a primary. */
  promote(name: ServerName): Promise<void>
  /** Runs statements on a server. */
  run<T>(name: ServerName, work: (sql: postgres.Sql) => Promise<T>): Promise<T>
}

export interface PairOptions {
  /** false: commits do not wait for the standby. Default: true. */
  readonly isSynchronous?: boolean
  /** Where the output of the servers goes. Default: a folder that is removed with the test. */
  readonly logs?: string
}

/** Starts both: `one` is the primary, and waits for `two` at each commit. They end with the test. */
export async function startPostgresPair(
  t: Teardown,
  { isSynchronous = true, logs }: PairOptions = {},
): Promise<PostgresPair> {
  const dataDir = await testDataDir(t)
  // Not taken back: what was killed may still write for a moment.
  await lendCluster(CACHE, dataDir)
  const folders = { one: join(dataDir, 'postgres'), two: join(dataDir, 'standby') }
  const ports = { one: await freePort(), two: await freePort() }
  const password = readPassword('postgres', dataDir)
  const binaries = findBinaries()
  const { prefix, owner } = await findUnprivileged([join(binaries, 'initdb'), '--show', '-D', folders.one])
  const serverOf = (server: ServerName, name: string) =>
    new Program({
      name,
      prefix,
      command: [join(binaries, 'postgres'), '-D', folders[server]],
      outputPath: join(logs ?? dataDir, `${name}.log`),
      host: LOOPBACK,
      port: ports[server],
    })
  const servers = { one: serverOf('one', 'postgres'), two: serverOf('two', 'standby') }
  t.teardown(() => Promise.all([servers.two.kill(), servers.one.kill()]))
  const resolveUrl = (host: string) => `postgres://${USER}:${password}@${host}/${DATABASE}`
  const url = (name: ServerName) => resolveUrl(`${LOOPBACK}:${ports[name]}`)
  const run: PostgresPair['run'] = async (name, work) => {
    const sql = postgres(url(name), { max: 1, fetch_types: false, onnotice: () => {} })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
  const start = async (name: ServerName) => {
    await servers[name].start()
    await eventually(`server ${name} answers`, () =>
      run(name, (sql) => sql`SELECT 1`).then(
        () => true,
        () => undefined,
      ),
    )
  }
  const write = (name: ServerName, file: string, text: string) => {
    const path = join(folders[name], file)
    writeFileSync(path, text, { mode: 0o600 })
    if (owner !== null) chownSync(path, owner.uid, owner.gid)
  }
  const settings = (name: ServerName) => `listen_addresses = '${LOOPBACK}'
port = ${ports[name]}
unix_socket_directories = ''
wal_level = replica
max_wal_senders = 5
wal_keep_size = 1GB
cluster_name = '${name}'
log_line_prefix = '%m %a '
lc_messages = 'C'
`
  const access = ['all', 'replication'].map((what) => `host ${what} all ${LOOPBACK}/32 scram-sha-256\n`)
  write('one', 'postgresql.conf', settings('one'))
  write('one', 'pg_hba.conf', access.join(''))
  await start('one')
  await run('one', async (sql) => {
    await sql`SELECT pg_backup_start('standby', true)`
    await promisify(execFile)('cp', ['-a', '--reflink=auto', folders.one, folders.two])
    const [stopped] = await sql`SELECT labelfile FROM pg_backup_stop(false)`
    write('two', 'backup_label', stopped!.labelfile)
  })
  rmSync(join(folders.two, 'postmaster.pid'))
  write('two', 'standby.signal', '')
  const source = `host=${LOOPBACK} port=${ports.one} user=${USER} password=${password} application_name=two`
  write('two', 'postgresql.conf', `${settings('two')}primary_conninfo = '${source}'\n`)
  await start('two')
  if (isSynchronous) {
    appendFileSync(join(folders.one, 'postgresql.conf'), "synchronous_standby_names = 'two'\n")
    await run('one', (sql) => sql`SELECT pg_reload_conf()`)
  }
  await eventually('the standby streams', () =>
    run('one', async (sql) => {
      const [row] = await sql`SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'`
      return row?.sync_state === (isSynchronous ? 'sync' : 'async') ? true : undefined
    }),
  )
  return {
    servers,
    url,
    bothUrl: resolveUrl(`${LOOPBACK}:${ports.one},${LOOPBACK}:${ports.two}`),
    run,
    promote: (name) => run(name, async (sql) => void (await sql`SELECT pg_promote(true, 60)`)),
  }
}
