/** `tollgate logs rebuild`: what it says, and when it fails. */
import t from 'tap'
import { progressLine } from '../../../src/cli/logs/rebuild.ts'
import { command, noEngines } from './support.ts'

t.test('progress is printed as rows, pace and what is left', async (t) => {
  t.equal(
    progressLine({ rows: 1_200_000, total: 8_000_000 }, 12_000),
    '1,200,000 of 8,000,000 rows (15 %), 100,000 rows/s, 1 min 8 s left',
  )
  t.equal(progressLine({ rows: 0, total: 7 }, 0), '0 of 7 rows (0 %), 0 rows/s')
  t.equal(progressLine({ rows: 7, total: 7 }, 7), '7 of 7 rows (100 %), 1,000 rows/s, 0 s left')
  t.match(progressLine({ rows: 1, total: 7_201 }, 1000), /, 2 h 0 min left$/)
})

t.test('the answer says how many rows there are, and how many were dropped by age', async (t) => {
  const wiring = { ...noEngines, rebuildLog: async () => ({ rows: 12_345, dropped: 678 }) }
  const json = await command(['logs', 'rebuild', '--json'], wiring)
  t.equal(json.code, 0)
  t.match(JSON.parse(json.stdout), { rows: 12_345, dropped_by_age: 678, seconds: 0 })
  const text = await command(['logs', 'rebuild'], wiring)
  t.equal(text.stdout, 'rebuilt: 12,345 rows in 0 s; 678 older ones were dropped by age\n')
})

t.test('a rebuild that fails says why', async (t) => {
  const rebuildLog = async () => {
    throw new Error('Another rebuild of the call log is under way')
  }
  const { code, stderr } = await command(['logs', 'rebuild'], { ...noEngines, rebuildLog })
  t.equal(code, 1)
  t.equal(stderr, 'error: Another rebuild of the call log is under way\n')
})

t.test('calls that only the log has are deleted on request, after a question', async (t) => {
  const unbooked = {
    calls: 1_234,
    cost: '5.5',
    accounts: [{ account_id: 'a', calls: 1_234, cost: '5.5', is_known: true }],
  }
  const asked: string[] = []
  const wiringWith = (answer: boolean | null) => ({
    ...noEngines,
    rebuildLog: async (_: unknown, confirmDeletion?: (sum: typeof unbooked) => Promise<void>) => {
      if (confirmDeletion === undefined) throw new Error('only the log has some')
      await confirmDeletion(unbooked)
      return { rows: 1, dropped: 0 }
    },
    confirm: async (question: string) => {
      asked.push(question)
      return answer
    },
  })
  t.match(await command(['logs', 'rebuild'], wiringWith(true)), { code: 1, stderr: /only the log has some/ })
  t.match(await command(['logs', 'rebuild', '--yes'], wiringWith(true)), { code: 1 })
  t.same(asked, [])
  t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith(false)), { code: 1 })
  t.match(asked, [
    /^Only the call log has 1,234 calls of 1 accounts, which cost 5\.5 credits\. They will be deleted for good\. Do it\? /,
  ])
  t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith(null)), {
    code: 1,
    stderr: /Name --yes to delete them\. Nothing was changed/,
  })
  t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith(true)), { code: 0 })
  t.match(await command(['logs', 'rebuild', '--delete-unbooked', '--yes'], wiringWith(null)), { code: 0 })
})
