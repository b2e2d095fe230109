import t from 'tap'
import { FileProblemError } from '../../../../src/markdown/problem.ts'
import { pageReader } from '../../../../src/server/knowledge/page-reader.ts'

/** Takes seconds: each list is read within the one around it. */
const NESTED = Array.from({ length: 500 }, (_, level) => `${' '.repeat(level)}- a`).join('\n')

t.test('a page that takes long delays nothing else of the process', async (t) => {
  const reader = pageReader()
  t.teardown(() => reader.close())
  const first = await reader.read(Buffer.from('# First'), 'first.md')
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const [nested, bad, last] = await Promise.allSettled([
    reader.read(Buffer.from(NESTED), 'nested.md'),
    reader.read(Buffer.from('---\ntitle: [a]\n---\n'), 'bad.md'),
    reader.read(Buffer.from('# Last'), 'last.md'),
  ])
  clearInterval(timer)
  t.ok(turns > 0, 'other work had its turns')
  t.equal(first.title, 'First')
  t.match(nested, { status: 'fulfilled', value: { title: 'nested' } })
  t.match(bad, { status: 'rejected', reason: FileProblemError })
  t.match(last, { status: 'fulfilled', value: { title: 'Last' } }, 'answers keep their order')
})

t.test('after its end it rejects', async (t) => {
  const reader = pageReader()
  const reading = reader.read(Buffer.from(NESTED), 'nested.md')
  reading.catch(() => undefined)
  await reader.close()
  await t.rejects(reading, /has ended/)
  await t.rejects(reader.read(Buffer.from('# A'), 'a.md'), /has ended/)
})
