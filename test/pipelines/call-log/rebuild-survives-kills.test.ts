/** A rebuild of the call log, and the copying beside it, wherever one of them is broken off. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import type { RebuildKillPoint } from './rebuild-child.ts'
import { CopyBench } from './usage-copy-support.ts'

const CHILD = fileURLToPath(new URL('./rebuild-child.ts', import.meta.url))
const LEFT_OVER =
  "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuilt%'"

t.test('the call log is rebuilt', async (t) => {
  const bench = await CopyBench.open(t)
  const { client, callLog } = bench
  const list = async (query: string) => (await client.query({ query, format: 'JSONEachRow' })).json()
  const rebuild = async () => {
    const own = await bench.openDatabase()
    try {
      return await rebuildLog({ database: own, callLog, rangeRows: 30, heldRows: 15 })
    } finally {
      await own.close()
    }
  }
  const assertWhole = async (t: Test) => {
    await bench.assertOnce(t)
    t.same(await list(LEFT_OVER), [], 'nothing is left beside it')
  }
  /** By a process that ends then: the next may copy. */
  async function copyAll() {
    const own = await bench.openDatabase()
    const copier = usageCopier({ database: own, callLog })
    try {
      copier.start()
      await bench.untilCopied()
    } finally {
      await copier.stop()
      await own.close()
    }
  }

  await bench.book(23)
  for (const point of ['claimed', 'inserted'] as const)
    await t.test(`while a range is ${point} whose copier was killed`, async (t) => {
      await bench.book(7)
      await bench.dieAt(point)
      await rebuild()
      await copyAll()
      await assertWhole(t)
    })

  await t.test('while a copier is between its insert and the end of its range', async (t) => {
    await bench.book(7)
    const copier = await bench.openDatabase()
    t.teardown(() => copier.close())
    const range = (await copier.claimCopyRange())!
    const text = await copier.readUsageRows(range)
    const token = `usage-${range.from}-${range.to}`
    await callLog.insertCalls({ token, text })
    await rebuild()
    await callLog.insertCalls({ token, text })
    await copier.finishCopyRange(range)
    await assertWhole(t)
  })

  const points: RebuildKillPoint[] = ['half done', 'one of two tables exchanged', 'exchanged']
  for (const point of points)
    await t.test(`killed when it is ${point}, the log is whole, and the next rebuild is`, async (t) => {
      const child = spawn(process.execPath, [CHILD], {
        env: { ...process.env, DIE_AT: point, ...bench.childEnvironment },
        stdio: ['ignore', 'inherit', 'inherit'],
      })
      t.teardown(() => child.kill('SIGKILL'))
      t.same(await once(child, 'exit'), [null, 'SIGKILL'])
      await bench.assertOnce(t)
      await bench.book(3)
      await copyAll()
      await rebuild()
      await assertWhole(t)
    })
})
