/** The data directory: who holds it, also over namespaces, and what a killed run leaves in it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import t from 'tap'
import { type DataDirLock, lockDataDir, readRunning } from '../../../src/embedded/data-dir.ts'
import { identify, isAlive, type ProcessIdentity } from '../../../src/embedded/process-identity.ts'
import { startEmbedded } from '../../../src/embedded/start.ts'
import { EngineRecord } from '../../../src/embedded/supervisor.ts'
import { startEngines, type Teardown, testDataDir } from '../../support/engines.ts'
import { IN_PID_NAMESPACE, whyNoPidNamespace } from '../../support/pid-namespace.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'

t.test('data dir', async (t) => {
  const HOLDER = fileURLToPath(new URL('../../support/hold-data-dir.ts', import.meta.url))

  /** Another process that holds the folder, or says why it cannot. */
  async function holdElsewhere(t: Teardown, dir: string): Promise<{ child: ChildProcess; says: string }> {
    const child = spawn(process.execPath, [HOLDER, dir], { stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const [chunk] = await once(child.stdout, 'data')
    return { child, says: String(chunk).trim() }
  }

  t.test('the folder is made for its owner alone, with spaces in its name or not', async (t) => {
    const dir = join(await testDataDir(t), 'some where', 'data')
    const lock = await lockDataDir(dir)
    t.equal(statSync(dir).mode & 0o777, 0o700)
    lock.release()
    t.equal(readFileSync(join(dir, 'lock'), 'utf8'), '')
  })

  t.test('a second service gets an error: who holds the folder, since when, where it answers', async (t) => {
    const dir = await testDataDir(t)
    const { child, says } = await holdElsewhere(t, dir)
    t.equal(says, 'held')
    const since = JSON.parse(readFileSync(join(dir, 'lock'), 'utf8')).since
    await t.rejects(lockDataDir(dir), {
      pid: child.pid,
      message: `${dir} is in use: process ${child.pid} has held it since ${since} and answers at ${RUN_ADDRESS.base_url}. Stop that one, or choose another folder with TOLLGATE_DATA_DIR.`,
    })
  })

  t.test('the same process cannot hold it twice, and can again after letting go', async (t) => {
    const dir = await testDataDir(t)
    const first = await lockDataDir(dir)
    await t.rejects(lockDataDir(dir), new RegExp(`process ${process.pid} has held it since`))
    first.release()
    const second = await lockDataDir(dir)
    first.release()
    t.not(readFileSync(join(dir, 'lock'), 'utf8'), '', 'letting go twice does not take the lock of the next')
    second.release()
  })

  t.test('the lock of a killed process is taken over', async (t) => {
    const dir = await testDataDir(t)
    const { child } = await holdElsewhere(t, dir)
    child.kill('SIGKILL')
    await once(child, 'exit')
    t.not(readFileSync(join(dir, 'lock'), 'utf8'), '')
    t.equal(readRunning(dir), null, 'nor does its run.json count')
    const lock = await lockDataDir(dir)
    t.equal(JSON.parse(readFileSync(join(dir, 'lock'), 'utf8')).pid, process.pid)
    lock.release()
  })

  t.test('a lock whose pid is of another process by now is taken over, and so is a broken one', async (t) => {
    const dir = await testDataDir(t)
    const since = new Date().toISOString()
    for (const content of [JSON.stringify({ pid: process.ppid, start: 'another', since }), '', '{"pid":1']) {
      writeFileSync(join(dir, 'lock'), content)
      const lock = await lockDataDir(dir)
      t.match(JSON.parse(readFileSync(join(dir, 'lock'), 'utf8')), identify(process.pid) ?? {})
      lock.release()
    }
  })

  t.test('of many that find a stale lock at once, one gets it', async (t) => {
    const dir = await testDataDir(t)
    writeFileSync(join(dir, 'lock'), JSON.stringify({ pid: 1, start: 'x', since: new Date().toISOString() }))
    const here = await Promise.allSettled([1, 2, 3, 4].map(() => lockDataDir(dir)))
    const elsewhere = await Promise.all([1, 2].map(() => holdElsewhere(t, dir)))
    const won = here.filter(
      (result): result is PromiseFulfilledResult<DataDirLock> => result.status === 'fulfilled',
    )
    t.equal(won.length, 1)
    t.strictSame(
      elsewhere.map(({ says }) => says),
      [`refused: ${process.pid}`, `refused: ${process.pid}`],
    )
    won[0]?.value.release()
  })

  t.test('run.json says where the service is while it runs, to its owner alone', async (t) => {
    const dir = await testDataDir(t)
    t.equal(readRunning(dir), null)
    const lock = await lockDataDir(dir)
    lock.writeRunFile(RUN_ADDRESS)
    t.equal(statSync(join(dir, 'run.json')).mode & 0o777, 0o600)
    t.match(readRunning(dir), { ...RUN_ADDRESS, pid: process.pid })
    lock.release()
    t.equal(readRunning(dir), null)
    t.notOk(existsSync(join(dir, 'run.json')))
  })

  t.test('a run.json whose pid belongs to another process by now is no running service', async (t) => {
    const dir = await testDataDir(t)
    const record = {
      ...RUN_ADDRESS,
      pid: process.ppid,
      started_at: new Date().toISOString(),
      process_start: 'another',
    }
    writeFileSync(join(dir, 'run.json'), JSON.stringify(record))
    t.equal(readRunning(dir), null)
  })
})

t.test('data dir over namespaces', async (t) => {
  // One service holds a data directory, whichever PID namespace it runs in: containers on one volume have one each.
  const HOLDER = fileURLToPath(new URL('../../support/hold-data-dir.ts', import.meta.url))
  const skip = whyNoPidNamespace() ?? false

  async function holdElsewhere(t: Teardown, dir: string, ...more: string[]) {
    const [program = '', ...args] = [...IN_PID_NAMESPACE, process.execPath, HOLDER, dir, ...more]
    const child: ChildProcess = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const [chunk] = await once(child.stdout!, 'data')
    return { child, says: String(chunk).trim() }
  }

  t.test('a folder that is held in another PID namespace is refused', { skip }, async (t) => {
    const dir = await testDataDir(t)
    const { says } = await holdElsewhere(t, dir)
    t.equal(says, 'held')
    const before = [readdirSync(dir).sort(), readFileSync(join(dir, 'run.json'), 'utf8')]
    const refused = await lockDataDir(dir, 100).catch((error: Error) => error)
    t.match(refused, { name: 'DataDirInUse' })
    t.match(
      refused,
      {
        message: new RegExp(
          `^${dir} is in use by a service that cannot be seen from here: process \\d+ on ${hostname()} has held it since .+\\. It runs in another container, or it has just been killed\\. Stop it and try again, or choose another folder with TOLLGATE_DATA_DIR\\.$`,
        ),
      },
      'who may hold it, and what to do',
    )
    t.same(
      [readdirSync(dir).sort(), readFileSync(join(dir, 'run.json'), 'utf8')],
      before,
      'nothing is deleted',
    )
    const { says: alsoElsewhere } = await holdElsewhere(t, dir, '100')
    t.match(alsoElsewhere, /^refused: \d+$/, 'nor may a third namespace have it')
  })

  t.test('a folder whose holder was killed in another PID namespace is free', { skip }, async (t) => {
    const dir = await testDataDir(t)
    const { child } = await holdElsewhere(t, dir)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const lock = await lockDataDir(dir)
    t.ok(lock.wasKilled)
    lock.release()
  })

  t.test(
    'the folder stays held while a process lives that its holder passed the lock on to',
    { skip },
    async (t) => {
      const dir = await testDataDir(t)
      const lock = await lockDataDir(dir)
      const engine = spawn('sleep', ['600'], { stdio: ['ignore', 'ignore', 'ignore', lock.fd] })
      t.teardown(() => engine.kill('SIGKILL'))
      lock.release()
      const { says } = await holdElsewhere(t, dir, '100')
      t.match(says, /^refused/)
      engine.kill('SIGKILL')
      await once(engine, 'exit')
      ;(await lockDataDir(dir)).release()
    },
  )

  /** A program of this name in the place of the machine's, until the test ends. */
  function replaceFlock(t: Teardown & { readonly testdirName: string }, script: string | null): void {
    const bin = join(t.testdirName, 'bin')
    mkdirSync(bin, { recursive: true })
    if (script !== null) {
      writeFileSync(join(bin, 'flock'), script)
      chmodSync(join(bin, 'flock'), 0o755)
    }
    const { PATH } = process.env
    process.env.PATH = bin
    t.teardown(() => {
      process.env.PATH = PATH
    })
  }

  t.test('a file system without locks is said to be one', async (t) => {
    t.testdir({})
    const dir = await testDataDir(t)
    replaceFlock(t, '#!/bin/sh\necho "flock: 3: No locks available" >&2\nexit 71\n')
    await t.rejects(lockDataDir(dir), {
      message: `${dir} cannot be locked: flock: 3: No locks available. A data directory needs a file system with locks (flock): choose another one with TOLLGATE_DATA_DIR.`,
    })
  })

  t.test('the locks of this machine are those of flock(2)', async (t) => {
    const dir = await testDataDir(t)
    const lock = await lockDataDir(dir)
    const path = join(dir, 'lock')
    t.throws(() => execFileSync('flock', ['-n', path, 'true'], { stdio: 'ignore' }))
    lock.release()
    t.ok(existsSync(path), 'the file stays: a lock of a deleted file would be nobody’s')
    execFileSync('flock', ['-n', path, 'true'])
  })
})

t.test('what a killed run leaves', async (t) => {
  const HOLDER = fileURLToPath(new URL('../../support/hold-engines.ts', import.meta.url))

  /** A process of its own that has started these engines and waits to be killed. */
  async function holdElsewhere(t: Teardown, dataDir: string, ...engines: string[]): Promise<ChildProcess> {
    const child = spawn(process.execPath, [HOLDER, dataDir, ...engines], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
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
    t.match(engines.readHealth().nats, { state: 'ready' })
    t.not(engines.readHealth().nats?.port, port)
  })

  t.test('a restart waits for its own port however long, for its address was given out', async (t) => {
    const engines = await startEngines(t, { only: ['nats'] })
    const port = engines.readHealth().nats?.port ?? 0
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
    t.match(engines.readHealth().nats, { state: 'ready', port })
  })
})
