/** The reference for people: all of the document, and nothing from elsewhere. */
import t from 'tap'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { FAILURES } from '../../../schemas/failure.ts'
import { fieldRows } from '../../../src/openapi/fields.ts'
import { html } from '../../../src/openapi/html.ts'
import { openApiDocument } from '../../../src/openapi/openapi.ts'
import { printPage } from '../../../src/openapi/page.ts'

const page = printPage(openApiDocument(ENDPOINTS, '1.2.3'))

const VOID = new Set(['meta', 'br', 'wbr'])

/** Elements that are not closed in the order in which they were opened. */
function unbalanced(text: string): string[] {
  const open: string[] = []
  const wrong: string[] = []
  for (const [tag, closes, name = ''] of text.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
    if (VOID.has(name)) continue
    if (closes === '') open.push(name)
    else if (open.pop() !== name) wrong.push(tag)
  }
  return [...wrong, ...open]
}

t.test('every endpoint has its section, and the way to it', async (t) => {
  t.same(unbalanced(page), [])
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length, 'ids are unique')
  for (const [, target = ''] of page.matchAll(/href="#([^"]+)"/g)) t.ok(ids.includes(target), target)
  for (const { path, summary } of ENDPOINTS) {
    t.match(page, `<code>${path}</code>`)
    t.match(page, html`${summary}`.text)
  }
  for (const code of Object.keys(FAILURES)) t.match(page, `<code>${code}</code>`)
})

t.test('it brings all that it needs', async (t) => {
  // Commands are text: the links in their examples load nothing.
  const loaded = page.replaceAll(/<pre>.*?<\/pre>/gs, '')
  t.notMatch(loaded, /<script|<link|<img|@import|url\(|https?:/)
  t.match(page, 'prefers-color-scheme: dark')
})

t.test('what is no markup is shown as text', async (t) => {
  t.equal(
    html`<b>${'<i>&"\''}</b>${3}${[html`${'a'}`, html`<br>`]}`.text,
    '<b>&lt;i&gt;&amp;&quot;&#39;</b>3a<br>',
  )
})

t.test('fields are found wherever they stand in a schema', async (t) => {
  const text = { type: 'string' }
  const schema = {
    type: 'object',
    properties: {
      model: { type: 'string', minLength: 1, description: 'Which.' },
      n: { anyOf: [{ type: 'integer', minimum: 1, maximum: 8 }, { type: 'null' }] },
      mode: { enum: ['a', 'b'] },
      parts: {
        type: 'array',
        items: {
          anyOf: [
            { type: 'object', properties: { type: { const: 'x' }, x: text }, required: ['type', 'x'] },
            { type: 'object', properties: { type: { const: 'y' } }, required: ['type'] },
          ],
        },
      },
      free: {},
      gone: { type: 'null' },
    },
    required: ['model'],
  }
  t.same(
    fieldRows(schema).map(({ name, type, isRequired, description }) => [name, type, isRequired, description]),
    [
      ['model', 'string, not empty', true, 'Which.'],
      ['n', 'integer, 1 to 8', false, ''],
      ['mode', '"a", "b"', false, ''],
      ['parts', 'array of objects', false, ''],
      ['parts[].type', '"x" or "y"', true, ''],
      ['parts[].x', 'string', false, ''],
      ['free', 'any', false, ''],
      ['gone', 'null', false, ''],
    ],
  )
})
