/** The tables of `docs` are as `npm run docs` writes them, and each of their rows has its prose. */
import t from 'tap'
import { findAbsentTables, findEmptyRows, PAGES, renderPage } from '../../scripts/docs.ts'
import { readText } from '../support/source-files.ts'

t.test('each page has its tables as the code has them', async (t) => {
  for (const page of PAGES) {
    const text = readText(page)
    t.equal(text, renderPage(text), `${page} is current: run \`npm run docs\``)
    t.same(findEmptyRows(text), [], `${page}: each row says what its first cell means`)
  }
})

t.test('each table stands in a page', async (t) => {
  t.same(findAbsentTables(PAGES.map(readText)), [])
})

t.test('prose is kept, and a new row asks for it', async (t) => {
  const written =
    '<!-- table: commands -->\n| command | words behind it | does |\n|---|---|---|\n| `providers` | – | prose |\n'
  const page = renderPage(written)
  t.match(page, '| `providers` | – | prose |\n')
  t.ok(findEmptyRows(page).includes('| `audit` | – |  |'))
  t.equal(renderPage(page), page)
})

t.test('a partial table has the rows that its page describes', async (t) => {
  const head = '<!-- table: call-columns -->\n| field | kind | rule |\n|---|---|---|\n'
  const page = renderPage(`${head}| \`cost\` | ? | prose |\n| \`gone\` | text | prose |\n`)
  t.equal(page, `${head}| \`cost\` | credits | prose |\n`)
  t.same(findEmptyRows(page), [])
})
