import t from 'tap'
import { reportOf } from '../../../pipelines/management/knowledge/report.ts'

t.test('an import that finds no file of most pages names a thousand of them, and counts all', async (t) => {
  const gone = Array.from({ length: 20_000 }, (_, i) => `notes/${i}.md`)
  const counts = { added: 0, changed: 0, unchanged: 1, pages: 20_001 }
  const none = { count: 0, first: [] }
  const report = reportOf(
    { ...counts, gone, ignoredFields: new Map() },
    { unresolved: none, sameTitle: none },
    false,
  )
  t.equal(report.gone, 20_000)
  t.same(report.gone_paths, gone.slice(0, 1_000))
})
