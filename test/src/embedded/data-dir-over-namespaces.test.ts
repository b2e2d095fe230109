/** One service holds a data directory, whichever PID namespace it runs in: containers on one volume have one each. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { lockDataDir } from '../../../src/embedded/data-dir.ts'
import { type Teardown, testDataDir } from '../../support/engines.ts'
import { IN_PID_NAMESPACE, whyNoPidNamespace } from '../../support/pid-namespace.ts'

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
  t.same([readdirSync(dir).sort(), readFileSync(join(dir, 'run.json'), 'utf8')], before, 'nothing is deleted')
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
