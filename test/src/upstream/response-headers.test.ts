import t from 'tap'
import { ResponseHeaders } from '../../../src/upstream/response/headers.ts'

const headers = new ResponseHeaders(
  '\r\nContent-Type: text/event-stream\r\nX-A:  1 \t\r\nx-empty:\r\nx-a: 2\r\nX-Text: \u00a0\u00c9: t\r\nlink: content-type: no\r\n',
)

t.test('found by lower-case name, blanks taken off, nothing else', async (t) => {
  t.equal(headers.get('content-type'), 'text/event-stream')
  t.equal(headers.get('x-empty'), '')
  t.equal(headers.get('x-text'), '\u00a0\u00c9: t')
  t.equal(headers.get('type'), undefined)
  t.equal(headers.get('a'), undefined)
  t.equal(headers.get('absent'), undefined)
})

t.test('repeated fields are joined by get', async (t) => {
  t.equal(headers.get('x-a'), '1, 2')
})

t.test('iteration gives every field in order', async (t) => {
  t.same(
    [...headers],
    [
      ['content-type', 'text/event-stream'],
      ['x-a', '1'],
      ['x-empty', ''],
      ['x-a', '2'],
      ['x-text', '\u00a0\u00c9: t'],
      ['link', 'content-type: no'],
    ],
  )
})

t.test('no fields at all', async (t) => {
  const none = new ResponseHeaders('\r\n')
  t.same([...none], [])
  t.equal(none.get('content-type'), undefined)
})
