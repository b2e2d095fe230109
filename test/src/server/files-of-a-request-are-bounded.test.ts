/** Files that the gateway fetches for a chat request: how many, how large, how many at once, and how they end together. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { fileFetcher, MAX_FILES } from '../../../src/server/gateway/fetch-files.ts'
import { until } from '../../support/eventually.ts'
import { serveHttp } from '../../support/http-server.ts'

const NEVER = new AbortController().signal
const WAIT_MS = 20_000
const fetchHere = fileFetcher({ isAllowed: (address) => address === '127.0.0.1', maxTotalBytes: 1000 })

const linksTo = (base: string, count: number) => Array.from({ length: count }, (_, at) => `${base}/${at}`)

/** Answers nothing until the test does; knows who is waiting. */
function held() {
  const open = new Map<string, ServerResponse>()
  let most = 0
  const listener: RequestListener = ({ url }, response) => {
    open.set(url!, response)
    most = Math.max(most, open.size)
    response.once('close', () => open.delete(url!))
  }
  return { open, listener, most: () => most }
}

t.test('more than sixteen files are refused before the first is asked for', async (t) => {
  let asked = 0
  const base = await serveHttp(t, (_, response) => {
    asked++
    response.end('x')
  })
  await t.rejects(fetchHere(linksTo(base, MAX_FILES + 1), WAIT_MS, NEVER), {
    code: 'invalid_request',
    message: /names 17 files by URL; at most 16/,
  })
  t.equal(asked, 0)
  const one = `${base}/one`
  const files = await fetchHere([...linksTo(base, MAX_FILES - 1), one, one], WAIT_MS, NEVER)
  t.equal(files.size, MAX_FILES, 'one that is named twice counts once')
  t.equal(asked, MAX_FILES, 'and is fetched once')
  t.equal(files.get(one)!.base64, Buffer.from('x').toString('base64'))
})

t.test('all of them together have a limit', async (t) => {
  const base = await serveHttp(t, (_, response) => void response.end(Buffer.alloc(300)))
  t.equal((await fetchHere(linksTo(base, 3), WAIT_MS, NEVER)).size, 3)
  await t.rejects(fetchHere(linksTo(base, 4), WAIT_MS, NEVER), {
    code: 'invalid_request',
    message: /MiB together/,
  })
})

t.test('four at a time, and the first failure ends the others', async (t) => {
  const { open, listener, most } = held()
  const fetched = fetchHere(linksTo(await serveHttp(t, listener), 9), WAIT_MS, NEVER)
  const failed = t.rejects(fetched, { message: /status 404/ })
  await until('four downloads', async () => open.size === 4)
  open.get('/0')!.end('x')
  await until('the fifth in its place', async () => open.has('/4'))
  open.get('/2')!.writeHead(404).end()
  await failed
  await until('no download', async () => open.size === 0)
  t.equal(most(), 4)
  t.notOk(open.has('/5'))
})

t.test('a client that leaves ends all of them', async (t) => {
  const { open, listener } = held()
  const client = new AbortController()
  const fetched = fetchHere(linksTo(await serveHttp(t, listener), 9), WAIT_MS, client.signal)
  const failed = t.rejects(fetched)
  await until('four downloads', async () => open.size === 4)
  client.abort()
  await failed
  await until('no download', async () => open.size === 0)
})

t.test('what cannot be reached and what is not public read the same', async (t) => {
  const gone = createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { port } = gone.address() as AddressInfo
  gone.close()
  const why = async (url: string, fetchFiles = fileFetcher()) => {
    const error = await fetchFiles([url], WAIT_MS, NEVER).catch((error: Error) => error)
    return (error as Error).message.replace(/^The file at \S+ /, '')
  }
  const unreachable = await why(`http://127.0.0.1:${port}/`, fetchHere)
  t.match(unreachable, /cannot be fetched: its server cannot be reached at a public address/)
  t.equal(await why('http://127.0.0.1:1/'), unreachable, 'an address')
  t.equal(await why('http://localhost:1/'), unreachable, 'a name of an inner host')
  t.equal(await why('http://no-such-host.invalid/'), unreachable, 'a name that nobody has')
})
