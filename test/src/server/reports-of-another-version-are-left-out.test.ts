import t from 'tap'
import { readReports } from '../../../src/server/process-reports.ts'

const report = {
  process: 'gateway 0',
  pid: 1,
  host: 'a',
  version: '0.1.0',
  started_at: new Date(0).toISOString(),
  engines: {},
  gauges: {},
  channels: [],
}

t.test('a report that cannot be read hides no other', async (t) => {
  const answers = [JSON.stringify({ ...report, pid: 'one' }), JSON.stringify(report)]
  t.same(readReports(answers), [report])
})

t.test('no answer is no empty list', async (t) => {
  t.equal(readReports(null), null)
  t.same(readReports([]), [])
})
