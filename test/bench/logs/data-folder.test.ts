import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { assertRoom, bytesNeeded, enterGround } from '../../../bench/logs/rows/data-folder.ts'

const MARK = { total: 5, generator: 'abc' }

t.test('a kept folder holds what was noted, for the next run', async (t) => {
  const folder = join(t.testdir(), 'kept')
  const first = await enterGround(folder)
  t.notOk(first.holds('clickhouse', MARK))
  first.note('clickhouse', MARK, { seconds: 7, note: 'well' })
  first.note('clickhouse-begun', MARK)
  first.leave()
  const second = await enterGround(folder)
  t.teardown(() => second.leave())
  t.ok(second.holds('clickhouse', MARK))
  t.same(second.made('clickhouse'), { seconds: 7, note: 'well' })
  t.ok(second.holds('clickhouse-begun', MARK))
  t.notOk(second.holds('clickhouse', { ...MARK, total: 6 }), 'another set')
  t.notOk(second.holds('postgres', MARK))
  second.forget('clickhouse')
  t.notOk(second.holds('clickhouse', MARK))
  t.equal(second.made('clickhouse'), null)
})

t.test('a mark that cannot be read is none', async (t) => {
  const ground = await enterGround(t.testdir())
  t.teardown(() => ground.leave())
  writeFileSync(join(ground.folder, 'clickhouse.mark.json'), '{"mark":{"tot')
  t.notOk(ground.holds('clickhouse', MARK))
})

t.test('two runs cannot be in one folder', async (t) => {
  const folder = t.testdir()
  const ground = await enterGround(folder)
  await t.rejects(enterGround(folder), /is in use/)
  ground.leave()
  const next = await enterGround(folder)
  next.leave()
})

t.test('a folder that is not kept goes with the run, and so does what a killed run left', async (t) => {
  const left = join(tmpdir(), 'tollgate-bench-run-999999999@gone@abcdef')
  mkdirSync(left, { recursive: true })
  const ground = await enterGround(null)
  t.notOk(existsSync(left))
  t.ok(existsSync(ground.folder))
  const beside = await enterGround(null)
  t.ok(existsSync(ground.folder), 'a run at the same time leaves it alone')
  beside.leave()
  ground.leave()
  t.notOk(existsSync(ground.folder))
})

t.test('a disk that is too small is reported before anything is written', async (t) => {
  t.throws(() => assertRoom(t.testdir(), Number.MAX_SAFE_INTEGER), /GiB are needed, .* GiB are free/)
  t.doesNotThrow(() => assertRoom(tmpdir(), 1))
  const small = bytesNeeded({ rows: 1_000_000, postgresRows: 0 })
  t.ok(bytesNeeded({ rows: 1_000_000, postgresRows: 1_000_000 }) > small)
  t.ok(bytesNeeded({ rows: 0, postgresRows: 0 }) < small)
})
