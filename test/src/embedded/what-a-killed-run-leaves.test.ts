import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import t from 'tap'
import { identify, isAlive, type ProcessIdentity } from '../../../src/embedded/process-identity.ts'
import { startEmbedded } from '../../../src/embedded/start.ts'
import { EngineRecord } from '../../../src/embedded/supervisor.ts'
import { startEngines, type Teardown, testDataDir } from '../../support/engines.ts'

const HOLDER = fileURLToPath(new URL('../../support/hold-engines.ts', import.meta.url))

/** A process of its own that has started these engines and waits to be killed. */
async function holdElsewhere(t: Teardown, dataDir: string, ...engines: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, [HOLDER, dataDir, ...engines], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

function recorded(dataDir: string, engine: string) {
  return EngineRecord.parse(JSON.parse(readFileSync(join(dataDir, 'engines', `${engine}.json`), 'utf8')))
}

async function gone(processes: ProcessIdentity[]): Promise<void> {
  while (processes.some(isAlive)) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** A process that is none of ours, and what it would have to lose. */
async function bystander(t: Teardown): Promise<{ child: ChildProcess; identity: ProcessIdentity }> {
  const child = spawn('sleep', ['600'])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = identify(child.pid ?? 0)
  if (identity === null) throw new Error('sleep did not start')
  return { child, identity }
}

t.test('the engines of a service killed with SIGKILL end, and the next start finds all data', async (t) => {
  const dataDir = await testDataDir(t)
  const names = ['postgres', 'nats', 'clickhouse', 'simulator']
  const service = await holdElsewhere(t, dataDir, ...names)
  const before = names.map((name) => recorded(dataDir, name))
  const processes = before.map(({ process }) => process).filter((process) => process !== null)
  t.equal(processes.filter(isAlive).length, names.length)
  service.kill('SIGKILL')
  await gone(processes)
  const engines = await startEmbedded({ dataDir, engines: ['postgres', 'nats'] })
  t.teardown(() => engines.stop())
  const sql = postgres(engines.urls.databaseUrl ?? '', { max: 1 })
  t.strictSame([...(await sql`SELECT n FROM left_behind`)], [{ n: 1 }])
  await sql.end()
  t.equal(recorded(dataDir, 'postgres').port, before[0]?.port, 'and prefers the same port')
})

t.test('an engine that outlived its service is ended by its recorded pid and start time', async (t) => {
  const dataDir = await testDataDir(t)
  mkdirSync(join(dataDir, 'engines'))
  const { identity } = await bystander(t)
  writeFileSync(join(dataDir, 'engines', 'nats.json'), JSON.stringify({ port: 4222, process: identity }))
  const events: string[] = []
  const onEvent = (event: { event: string }) => void events.push(event.event)
  const engines = await startEmbedded({ dataDir, engines: ['nats'], onEvent })
  t.teardown(() => engines.stop())
  t.notOk(isAlive(identity))
  t.equal(events[0], 'stale-ended')
})

t.test('a process that was given the pid since is left alone', async (t) => {
  const engines = await startEngines(t, { only: ['nats', 'postgres'] })
  const { dataDir } = engines
  const { identity } = await bystander(t)
  for (const name of ['nats', 'postgres'] as const) {
    await engines.stopEngine(name)
    const reused = { port: recorded(dataDir, name).port, process: { pid: identity.pid, start: 'another' } }
    writeFileSync(join(dataDir, 'engines', `${name}.json`), JSON.stringify(reused))
  }
  // PostgreSQL has a pid file of its own, and by itself refuses to start while that pid is alive.
  const lines = [identity.pid, join(dataDir, 'postgres'), 1700000000, 5432, '', '127.0.0.1', '', 'ready']
  writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), `${lines.join('\n')}\n`)
  for (const name of ['nats', 'postgres'] as const) await engines.startEngine(name)
  t.ok(isAlive(identity))
  const sql = postgres(engines.databaseUrl, { max: 1 })
  t.strictSame([...(await sql`SELECT 1 AS n`)], [{ n: 1 }])
  await sql.end()
})

t.test('a port that is taken at a new start is replaced by a free one', async (t) => {
  const dataDir = await testDataDir(t)
  const squatter = createServer()
  t.teardown(() => squatter.close())
  await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve))
  const address = squatter.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  mkdirSync(join(dataDir, 'engines'))
  writeFileSync(join(dataDir, 'engines', 'nats.json'), JSON.stringify({ port, process: null }))
  const engines = await startEmbedded({ dataDir, engines: ['nats'] })
  t.teardown(() => engines.stop())
  t.match(engines.health().nats, { state: 'ready' })
  t.not(engines.health().nats?.port, port)
})

t.test('a restart waits for its own port however long, for its address was given out', async (t) => {
  const engines = await startEngines(t, { only: ['nats'] })
  const port = engines.health().nats?.port ?? 0
  await engines.stopEngine('nats')
  const squatter = createServer()
  t.teardown(() => squatter.close())
  await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve))
  const starting = engines.startEngine('nats')
  while (engines.events.filter(({ event }) => event === 'started').length < 3) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  squatter.close()
  await starting
  t.match(engines.health().nats, { state: 'ready', port })
})
