import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type DataDirLock, lockDataDir, readRunning } from '../../../src/embedded/data-dir.ts'
import { identify } from '../../../src/embedded/process-identity.ts'
import { type Teardown, testDataDir } from '../../support/engines.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'

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
