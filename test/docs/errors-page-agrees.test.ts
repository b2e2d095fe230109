import t from 'tap'
import { AUTH_MESSAGES, FAILURES, upstreamStatusName } from '../../schemas/failure.ts'
import { readText } from '../support/source-files.ts'

const page = readText('docs/errors.md')

/** The rows of the table whose head begins with these cells; marks of code taken off. */
function table(head: string): string[][] {
  const lines = page.split('\n')
  const start = lines.findIndex((line) => line.startsWith(head))
  if (start < 0) throw new Error(`no table ${head}`)
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  return lines.slice(start + 2, end).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

t.test('the catalogue and the page list the same failures, named alike', async (t) => {
  const rows = table('| HTTP | code |')
  t.same(
    rows.map(([status, code, type, messagesType, generateStatus]) => ({
      code,
      status: Number(status),
      type,
      messagesType,
      generateStatus,
    })),
    Object.entries(FAILURES).map(([code, row]) => ({ code, ...row })),
  )
  for (const [, code, , , , when] of rows) t.match(when, /^[A-Z].*\.$/, `${code} says when`)
})

t.test("an upstream's status is named as the page has it", async (t) => {
  for (const [status = '', code, type] of table('| upstream status |'))
    t.same(upstreamStatusName(status === 'any other' ? 418 : Number(status)), { code, type }, status)
})

t.test('the messages of 401 are those of the page', async (t) => {
  t.same(Object.fromEntries(table('| reason |')), AUTH_MESSAGES)
})
