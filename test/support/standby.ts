/** A PostgreSQL primary and a streaming standby of it, which can be promoted. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { freePort, LOOPBACK } from '../../src/embedded/ports.ts'
import { DATABASE, USER } from '../../src/embedded/postgres/cluster.ts'
import { findBinaries } from '../../src/embedded/postgres/postgres.ts'
import { passwordFor } from '../../src/embedded/private-file.ts'
import { endWithUs, findUnprivileged, plainEnvironment } from '../../src/embedded/programs.ts'
import { lendCluster } from './clusters.ts'
import { type Teardown, testDataDir } from './engines.ts'
import { eventually } from './eventually.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate', import.meta.url))
/** The names of the servers, by which a synchronous standby is known. */
export type ServerName = 'one' | 'two'

export interface PostgresPair {
  /** Leads to one server. */
  url(name: ServerName): string
  /** Names both servers. */
  readonly bothUrl: string
  /** Ends a server at once, as the loss of its machine does. */
  kill(name: ServerName): Promise<void>
  /** Stops all processes of a server where they are: it answers nothing, and its connections stay open. */
  freeze(name: ServerName): void
  /** Lets them go on. */
  thaw(name: ServerName): void
  /** Makes the standby a primary. */
  promote(name: ServerName): Promise<void>
  /** Runs statements on a server. */
  run<T>(name: ServerName, work: (sql: postgres.Sql) => Promise<T>): Promise<T>
}

/**
 * Starts both: `one` is the primary, and waits for `two` at each commit. They end with the test.
 * @param isSynchronous false: commits do not wait for the standby
 */
export async function startPostgresPair(t: Teardown, { isSynchronous = true } = {}): Promise<PostgresPair> {
  const dataDir = await testDataDir(t)
  // Not taken back: what was killed may still write for a moment.
  await lendCluster(CACHE, dataDir)
  const folders = { one: join(dataDir, 'postgres'), two: join(dataDir, 'standby') }
  const ports = { one: await freePort(), two: await freePort() }
  const password = passwordFor('postgres', dataDir)
  const binaries = findBinaries()
  const { prefix, owner } = await findUnprivileged([join(binaries, 'initdb'), '--show', '-D', folders.one])
  const running = new Map<ServerName, ChildProcess>()
  const urlOf = (host: string, path = `/${DATABASE}`) => `postgres://${USER}:${password}@${host}${path}`
  const url = (name: ServerName) => urlOf(`${LOOPBACK}:${ports[name]}`)
  const run: PostgresPair['run'] = async (name, work) => {
    const sql = postgres(url(name), { max: 1, fetch_types: false, onnotice: () => {} })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
  const start = async (name: ServerName) => {
    const command = [...prefix, ...endWithUs('SIGKILL'), join(binaries, 'postgres'), '-D', folders[name]]
    const [program = '', ...args] = command
    const child = spawn(program, args, { env: plainEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.on('data', (bytes) => {
      said = (said + bytes).slice(-4_000)
    })
    running.set(name, child)
    await eventually(`server ${name} answers`, async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}: ${said}`)
      return run(name, (sql) => sql`SELECT 1`).then(
        () => true,
        () => undefined,
      )
    })
  }
  const signal = (name: ServerName, kind: NodeJS.Signals) => {
    const pid = running.get(name)!.pid!
    const others = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    for (const one of [pid, ...others.filter(Boolean).map(Number)]) {
      try {
        process.kill(one, kind)
      } catch {
        // It has ended meanwhile.
      }
    }
  }
  const kill = async (name: ServerName) => {
    const child = running.get(name)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    signal(name, 'SIGKILL')
    await gone
  }
  t.teardown(async () => {
    await kill('two')
    await kill('one')
  })
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
cluster_name = '${name}'
lc_messages = 'C'
`
  const access = ['all', 'replication'].map((what) => `host ${what} all ${LOOPBACK}/32 scram-sha-256\n`)
  write('one', 'postgresql.conf', settings('one'))
  write('one', 'pg_hba.conf', access.join(''))
  await start('one')
  await run('one', async (sql) => {
    await sql`SELECT pg_backup_start('standby', true)`
    await promisify(execFile)('cp', ['-a', folders.one, folders.two])
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
    url,
    bothUrl: urlOf(`${LOOPBACK}:${ports.one},${LOOPBACK}:${ports.two}`),
    kill,
    freeze: (name) => signal(name, 'SIGSTOP'),
    thaw: (name) => signal(name, 'SIGCONT'),
    run,
    promote: (name) => run(name, async (sql) => void (await sql`SELECT pg_promote(true, 60)`)),
  }
}
