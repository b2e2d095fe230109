import t from 'tap'
import { finishHead, headPrefix, renderHead } from '../../../src/upstream/client.ts'
import { headBytes, type RequestHead } from '../../../src/upstream/request/head.ts'

const textOf = (head: RequestHead): string => headBytes(head).toString('latin1')

t.test('a head with a body', async (t) => {
  t.equal(
    textOf(
      renderHead('POST', '/v1/chat/completions?a=b', 'api.example.com', [['Authorization', 'Bearer k']], 12),
    ),
    'POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: api.example.com\r\nAuthorization: Bearer k\r\ncontent-length: 12\r\n\r\n',
  )
})

t.test('a head without one', async (t) => {
  t.equal(textOf(renderHead('GET', '/', 'a:81', [], null)), 'GET / HTTP/1.1\r\nhost: a:81\r\n\r\n')
})

t.test('a constant prefix finished per call gives the same', async (t) => {
  const prefix = headPrefix('POST', '/x', 'a', [['accept', '*/*']])
  t.equal(textOf(finishHead(prefix, 5)), textOf(renderHead('POST', '/x', 'a', [['accept', '*/*']], 5)))
  const headers = [
    ['accept', '*/*'],
    ['x-trace', '1'],
    ['x-other', '2'],
  ] as const
  t.equal(
    textOf(finishHead(prefix, 0, headers.slice(2), 'x-trace: 1\r\n')),
    textOf(renderHead('POST', '/x', 'a', headers, 0)),
  )
})

const render = (over: {
  method?: string
  path?: string
  authority?: string
  name?: string
  value?: string
}) => {
  const { method = 'POST', path = '/', authority = 'a', name = 'x', value = 'y' } = over
  return textOf(renderHead(method, path, authority, [[name, value]], 0))
}

t.test('nothing can end a line or begin another', async (t) => {
  for (const evil of ['\r', '\n', '\0', '\r\nhost: b', '\u010a', '\u0a0d', '\u{1f600}']) {
    t.throws(() => render({ path: `/${evil}` }), TypeError)
    t.throws(() => render({ authority: `a${evil}` }), TypeError)
    t.throws(() => render({ method: `GET${evil}` }), TypeError)
    t.throws(() => render({ name: `x${evil}` }), TypeError)
    t.throws(() => render({ value: `y${evil}` }), TypeError)
    t.throws(() => finishHead(headPrefix('GET', '/', 'a', []), 0, [['x', `y${evil}`]]), TypeError)
  }
})

t.test('illegal parts are refused', async (t) => {
  for (const path of ['', 'x', 'http://a/', '/a b', '/a#b', '/\u00e9'])
    t.throws(() => render({ path }), TypeError)
  for (const method of ['', 'get', 'G ET', 'CONNECT']) t.throws(() => render({ method }), TypeError)
  for (const name of ['', 'a b', 'a:', '\u00e9', '(a)']) t.throws(() => render({ name }), TypeError)
  for (const authority of ['', 'a b']) t.throws(() => render({ authority }), TypeError)
  for (const length of [-1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1]) {
    t.throws(() => renderHead('POST', '/', 'a', [], length), TypeError)
  }
})

t.test('what frames the message belongs to the client', async (t) => {
  for (const name of [
    'Content-Length',
    'transfer-encoding',
    'HOST',
    'Connection',
    'Upgrade',
    'TE',
    'Expect',
  ]) {
    t.throws(() => render({ name }), { message: /client itself/ })
  }
})

t.test('an error never shows a value: it may be a key', async (t) => {
  try {
    render({ name: 'authorization', value: 'Bearer secret\n' })
    t.fail('not refused')
  } catch (error) {
    t.notMatch(String(error), /secret/)
  }
})

t.test('tabs and obs-text in values pass', async (t) => {
  t.match(render({ value: 'caf\u00e9\tau lait' }), 'caf\u00e9\tau lait')
})
