import t from 'tap'
import { readReports } from '../../../src/server/process-reports.ts'

const report = { process: 'gateway 0', pid: 1, host: 'a' }

t.test('a report that cannot be read hides no other', async (t) => {
  const answers = [JSON.stringify({ ...report, pid: 'one' }), JSON.stringify(report)]
  t.match(readReports(answers), { length: 1, 0: { ...report, engines: {} } })
})

t.test('no answer is no empty list', async (t) => {
  t.equal(readReports(null), null)
  t.same(readReports([]), [])
})
