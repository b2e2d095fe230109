/** What the server itself finds by its path is what its table has under that path, and nothing that is alike. */
import t from 'tap'
import { RawClient, serve, whole } from './support.ts'

const ORDERS = '/v1/orders'

async function asked(port: number, method: string, target: string): Promise<string> {
  const client = new RawClient(port)
  client.send(`${method} ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  const answer = await client.until((text) => text.includes('\r\n\r\n'))
  client.socket.destroy()
  return answer.split(' ')[1] ?? ''
}

t.test('the path as it is written out, with any query', async (t) => {
  const { port, seen } = await serve(t, { [`POST ${ORDERS}`]: () => whole('made') })
  for (const [target, query] of [
    [ORDERS, ''],
    [`${ORDERS}?`, ''],
    [`${ORDERS}?a=/v1/b&c=%20`, 'a=/v1/b&c=%20'],
  ] as const) {
    t.equal(await asked(port, 'POST', target), '200', target)
    const { method, path, query: received } = seen.at(-1)!
    t.same({ method, path, query: received }, { method: 'POST', path: ORDERS, query })
  }
})

t.test('none that is alike, and no other method', async (t) => {
  const { port, seen } = await serve(t, { [`POST ${ORDERS}`]: () => whole('made') })
  for (const target of [
    `${ORDERS}/`,
    `${ORDERS}//`,
    `/${ORDERS}`,
    '/v1//orders',
    '/V1/orders',
    '/v1/%6frders',
    '/v1/order',
    '/v1/orders/1',
    '/v1/orders;a',
    '/v1',
  ])
    t.equal(await asked(port, 'POST', target), '404', target)
  for (const method of ['GET', 'PUT', 'post', 'POSTS'])
    t.equal(await asked(port, method, ORDERS), '405', method)
  t.same(seen, [])
})

t.test('a path with several methods', async (t) => {
  const { port, seen } = await serve(t, {
    [`POST ${ORDERS}`]: () => whole('made'),
    [`GET ${ORDERS}`]: () => whole('all'),
  })
  for (const method of ['GET', 'POST']) t.equal(await asked(port, method, ORDERS), '200')
  t.same(
    seen.map(({ method }) => method),
    ['GET', 'POST'],
  )
  t.equal(await asked(port, 'DELETE', ORDERS), '405')
})

t.test('a draining server refuses what it has found itself too', async (t) => {
  const { port, server, seen } = await serve(t, { [`POST ${ORDERS}`]: () => whole('made') })
  server.drain()
  t.equal(await asked(port, 'POST', ORDERS), '503')
  t.same(seen, [])
})

t.test('a method that names what every object has is not allowed', async (t) => {
  const { port, seen } = await serve(t, { [`POST ${ORDERS}`]: () => whole('made') })
  for (const method of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'GET'])
    t.equal(await asked(port, method, ORDERS), '405', method)
  t.equal(seen.length, 0)
})
