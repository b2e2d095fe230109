/** The address of a client: the connection's, or what a trusted proxy says, whatever a client sends. */
import t, { type Test } from 'tap'
import { plainAddress } from '../../../src/core/keys/address-prefix.ts'
import type { Handler } from '../../../src/http/handler.ts'
import { ask, clientLimits, clientOn, head, isWhole, serve, until, whole } from './support.ts'

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
/** A header of version 2 of the PROXY protocol: TCP over IPv4. */
const proxyHeader = (...source: [number, number, number, number]) =>
  Buffer.from([...SIGNATURE, 0x21, 0x11, 0, 12, ...source, 127, 0, 0, 1, 0x11, 0x22, 0, 80])

const tellAddress: Handler = (request) => whole(plainAddress(request.address?.() ?? ''))
const bodyOf = (text: string) => text.slice(text.indexOf('\r\n\r\n') + 4)

async function start(t: Test, proxies: readonly string[]) {
  const { port } = await serve(t, { 'GET /address': tellAddress }, clientLimits({ proxies }))
  const request = (...fields: string[]) => head('GET /address', ...fields)
  return { port, request }
}

t.test('X-Forwarded-For is not read where no trusted proxy made the connection', async (t) => {
  const { port, request } = await start(t, ['10.0.0.0/8'])
  for (const field of ['x-forwarded-for: 203.0.113.7', 'x-forwarded-for: 10.0.0.1, 203.0.113.7'])
    t.equal(bodyOf(await ask(t, port, request(field), isWhole)), '127.0.0.1', field)
})

t.test('of a trusted proxy the last hop counts, over all lines of the header', async (t) => {
  const { port, request } = await start(t, ['127.0.0.1', '10.0.0.0/8'])
  const table: ReadonlyArray<readonly [fields: string[], address: string]> = [
    [[], '127.0.0.1'],
    [['x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
    [['x-forwarded-for: 198.51.100.1, 203.0.113.7, 10.0.0.2'], '203.0.113.7'],
    [['x-forwarded-for: 198.51.100.1', 'x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
    [['X-Forwarded-For: 198.51.100.1', 'x: y', 'x-forwarded-FOR: 203.0.113.7, 10.0.0.9'], '203.0.113.7'],
    [['x-forwarded-for: 203.0.113.7', 'x-forwarded-for: '], '203.0.113.7'],
    [['x-forwarded-for: 198.51.100.1, junk'], '127.0.0.1'],
    [['x-forwarded-for: 999.1.1.1, 10.0.0.2'], '10.0.0.2'],
    [['x-forwarded-for: [2001:db8::5]:443'], '2001:db8:0:0:0:0:0:5'],
    [['x-real-ip: 198.51.100.1', 'forwarded: for=198.51.100.1', 'client-ip: 198.51.100.1'], '127.0.0.1'],
  ]
  for (const [fields, address] of table)
    t.equal(bodyOf(await ask(t, port, request(...fields), isWhole)), address, fields.join(' | '))
})

t.test('headers of the PROXY protocol name no address, from a trusted proxy neither', async (t) => {
  for (const proxies of [[], ['127.0.0.1']]) {
    const { port, request } = await start(t, proxies)
    const first = Buffer.concat([proxyHeader(203, 0, 113, 7), Buffer.from(request())])
    t.equal(bodyOf(await ask(t, port, first, isWhole)), '127.0.0.1')
    const client = clientOn(t, port)
    await client.send(first).until(isWhole)
    client.send(Buffer.concat([proxyHeader(198, 51, 100, 1), Buffer.from(request())]))
    await until(() => client.text.split('HTTP/1.1 200').length === 3)
    t.ok(client.text.endsWith('127.0.0.1'), 'nor one before the next request of a connection')
    const written = `PROXY TCP4 203.0.113.7 127.0.0.1 4000 80\r\n${request()}`
    t.match(await ask(t, port, written), /^HTTP\/1\.1 505/, 'version 1 is refused')
  }
})
