import type { RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { taskStorage } from '../../../src/server/tasks/storage.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { serveHttp } from '../../support/http-server.ts'
import { bytesOf, folderStore } from '../storage/support.ts'

const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100_000, 1)])
const MP3 = Buffer.concat([Buffer.from('ID3\x04'), Buffer.alloc(1000)])
/** A JPEG whose size comes after long metadata. */
const PICTURE = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff]),
  Buffer.alloc(0xffff - 2, 1),
  Buffer.from([0xff, 0xc0, 0, 17, 8, 0, 32, 0, 48, 3]),
  Buffer.alloc(100),
])
const FILES: Readonly<Record<string, Buffer | string>> = {
  '/a.png': PNG,
  '/b.jpg': PICTURE,
  '/odd': 'odd sound',
}
const LIMITS = { maxBytes: 1024 * 1024, timeoutMs: 5_000 }

/** A server of the test's own on `address`, and its host as a URL has it. */
const host = async (t: Test, answer: RequestListener, address?: string): Promise<string> =>
  new URL(await serveHttp(t, answer, address)).host

async function storage(t: Test, isAllowed?: (address: string) => boolean) {
  const { store } = await folderStore(t)
  return { store, ...taskStorage({ store, ...(isAllowed && { isAllowed }) }) }
}

t.test('a result is copied from the channel’s own host; its first bytes say what it is', async (t) => {
  const own = await host(t, ({ url }, response) => {
    response.setHeader('content-type', 'application/octet-stream')
    if (url === '/odd') response.setHeader('content-type', 'audio/opus')
    response.end(FILES[url ?? ''] ?? MP3)
  })
  const { copy, store } = await storage(t)
  t.same(await copy(`http://${own}/a.png`, 'images/a.png', LIMITS, own), {
    bytes: PNG.length,
    mediaType: 'image/png',
    width: null,
    height: null,
  })
  t.ok((await bytesOf((await store.get('images/a.png'))!.stream)).equals(PNG))
  const picture = { bytes: PICTURE.length, mediaType: 'image/jpeg', width: 48, height: 32 }
  t.same(await copy(`http://${own}/b.jpg`, 'images/b.jpg', LIMITS, own), picture, 'and is so large')
  t.match(await copy(`http://${own}/song`, 'music/a.mp3', LIMITS, own), { mediaType: 'audio/mpeg' })
  t.match(await copy(`http://${own}/odd`, 'music/b.mp3', LIMITS, own), { mediaType: 'audio/opus' })
})

t.test('a result that its store serves compressed is kept as the file that it is', async (t) => {
  const own = await host(t, (_, response) => {
    response
      .writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' })
      .end(gzipSync(PICTURE))
  })
  const { copy, store } = await storage(t)
  const picture = { bytes: PICTURE.length, mediaType: 'image/jpeg', width: 48, height: 32 }
  t.same(await copy(`http://${own}/b.jpg`, 'images/c.jpg', LIMITS, own), picture)
  t.ok((await bytesOf((await store.get('images/c.jpg'))!.stream)).equals(PICTURE))
})

t.test('no other host of an inner network, another port included, and none by a redirect', async (t) => {
  let secrets = 0
  const other = await host(t, (_, response) => {
    secrets++
    response.end(PNG)
  })
  const own = await host(t, ({ url }, response) => {
    if (url === '/a.png') response.end(PNG)
    else if (url === '/home') response.writeHead(302, { location: '/a.png' }).end()
    else response.writeHead(302, { location: `http://${other}/` }).end()
  })
  const { copy, store } = await storage(t)
  const notPublic = { message: /public address/ }
  await t.rejects(copy(`http://${own}/a.png`, 'images/a.png', LIMITS, null), notPublic, 'a caller’s own link')
  await t.rejects(copy(`http://${other}/`, 'images/a.png', LIMITS, own), notPublic)
  await t.rejects(copy(`http://${own}/away`, 'images/a.png', LIMITS, own), notPublic)
  await t.rejects(copy(`http://localhost:${own.split(':')[1]}/a.png`, 'images/a.png', LIMITS, own), notPublic)
  t.equal(secrets, 0)
  t.equal(await store.head('images/a.png'), null)
  await t.resolves(copy(`http://${own}/home`, 'images/a.png', LIMITS, own), 'a redirect at home')
})

t.test('an address is resolved once, and the connection goes there', async (t) => {
  const own = await host(t, (_, response) => void response.end(PNG))
  const asked: string[] = []
  const { copy } = await storage(t, (address) => {
    asked.push(address)
    // As a name does that points elsewhere at its second look-up.
    return asked.filter((one) => one === address).length === 1
  })
  await copy(`http://localhost:${own.split(':')[1]}/a.png`, 'images/a.png', LIMITS, null).catch(
    () => undefined,
  )
  t.equal(new Set(asked).size, asked.length, 'no address was asked for twice')
})

t.test('what is no file of media is not kept', async (t) => {
  const own = await host(t, ({ url }, response) => {
    response.setHeader('content-type', url === '/svg' ? 'image/svg+xml' : 'text/html')
    if (url === '/gone') response.statusCode = 404
    response.end(url === '/empty' ? '' : '<svg>sorry</svg>')
  })
  const { copy, store } = await storage(t)
  for (const path of ['/page', '/svg', '/empty', '/gone'])
    await t.rejects(copy(`http://${own}${path}`, 'images/a.png', LIMITS, own), path)
  t.equal(await store.head('images/a.png'), null)
})

t.test('too large, too slow, cut or not wanted: nothing is kept, and the server is let go', async (t) => {
  let open = 0
  const own = await host(t, ({ url }, response) => {
    open++
    response.on('close', () => open--)
    if (url === '/told') response.writeHead(200, { 'content-length': LIMITS.maxBytes + 1 })
    if (url === '/cut') response.writeHead(200, { 'content-length': 200_000 })
    response.write(PNG)
    if (url === '/cut') setTimeout(() => response.destroy(), 20)
    if (url !== '/endless') return
    const send = (): void => {
      if (response.destroyed) return
      if (response.write(Buffer.alloc(65_536))) setImmediate(send)
      else response.once('drain', send)
    }
    send()
  })
  const { copy, store } = await storage(t)
  const from = (path: string, limits = LIMITS, signal?: AbortSignal) =>
    copy(`http://${own}${path}`, 'images/a.png', limits, own, signal)
  await t.rejects(from('/told'), { message: /larger than 1048576 bytes/ })
  await t.rejects(from('/endless'), { message: /larger than 1048576 bytes/ })
  await t.rejects(from('/silent', { ...LIMITS, timeoutMs: 80 }), { message: /in time/ })
  await t.rejects(from('/cut'))
  const abort = new AbortController()
  setTimeout(() => abort.abort(), 50)
  await t.rejects(from('/silent', LIMITS, abort.signal))
  t.equal(await store.head('images/a.png'), null)
  while (open > 0) await new Promise((resolve) => setTimeout(resolve, 2))
  t.pass('every connection is closed')
})

t.test('objects are read whole within a bound, or as they come', async (t) => {
  const { put, read, open, store, ...rest } = await storage(t)
  t.same(await put('speech/a.mp3', MP3, 'audio/mpeg'), { bytes: MP3.length, mediaType: 'audio/mpeg' })
  t.ok((await read('speech/a.mp3', MP3.length)).equals(MP3))
  t.ok((await bytesOf(await open('speech/a.mp3'))).equals(MP3))
  await t.rejects(read('speech/a.mp3', MP3.length - 1), { message: /more than/ })
  await t.rejects(read('speech/none.mp3', 1), { message: /no object/ })
  await t.rejects(open('speech/none.mp3'), { message: /no object/ })
  async function* failing() {
    yield MP3
    throw new Error('cut')
  }
  const cut = Object.assign(Object.create(store) as ObjectStore, {
    get: async () => ({ bytes: 9, mediaType: 'audio/mpeg', stream: Readable.from(failing()) }),
  })
  await t.rejects(taskStorage({ store: cut }).read('speech/a.mp3', 9), {
    name: 'StoreFailure',
    message: 'cut',
  })
  t.equal(rest.permanentLink('speech/a.mp3'), store.permanentLink('speech/a.mp3'))
  t.match(await rest.link('speech/a.mp3', Date.now() + 1000), 'expires=')
  await rest.delete(['speech/a.mp3'])
  t.equal(await store.head('speech/a.mp3'), null)
})
