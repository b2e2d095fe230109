import { randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { files } from '../../../pipelines/media/files/files.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { HOST, RawClient, serve, until } from '../../src/http/support.ts'
import { bucketStore, folderStore, MASTER_KEY, PUBLIC_URL } from '../../src/storage/support.ts'

const fileLinkKey = linkKey(MASTER_KEY)
const DAY_MS = 24 * 60 * 60 * 1000
const FILM_BYTES = 300_000
const FILM = randomBytes(FILM_BYTES)
const film = { mediaType: 'video/mp4', maxBytes: 64 * 1024 * 1024 }

/** Of this process, below a folder. */
const openFiles = (folder: string): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
    } catch {
      return false
    }
  }).length

interface Got {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/** As an import names the file that a page was made from. */
const SOURCE = `sources/kb_1/${'0a'.repeat(32)}-handbook.pdf`

async function served(t: Test, store: ObjectStore, now?: () => number) {
  const answer = files({ files: store, fileLinkKey, ...(now ? { now } : {}) })
  const paths = [
    'videos/film.mp4',
    'videos/gone.mp4',
    'videos/other.mp4',
    'inputs/page',
    'images/none.png',
    SOURCE,
    'a',
  ]
  const routes = paths.flatMap((key) =>
    ['GET', 'HEAD'].map((method) => [`${method} /files/${key}`, answer] as const),
  )
  const { port, unforeseen } = await serve(t, Object.fromEntries(routes))
  const local = (link: string) => link.replace(PUBLIC_URL, `http://${HOST}:${port}`)
  const get = async (link: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> => {
    const response = await fetch(local(link), { headers, method, redirect: 'manual' })
    const bytes = Buffer.from(await response.arrayBuffer())
    return { status: response.status, headers: response.headers, bytes }
  }
  return { get, local, port, unforeseen }
}

async function withFilm(t: Test, now?: () => number) {
  const { store, folder } = await folderStore(t)
  await store.put('videos/film.mp4', FILM, film)
  return { store, folder, ...(await served(t, store, now)) }
}

t.test('a link opens: all of the file, its type, its length', async (t) => {
  const { get, store } = await withFilm(t)
  for (const link of [
    await store.link('videos/film.mp4', Date.now() + DAY_MS),
    store.permanentLink('videos/film.mp4'),
  ]) {
    const { status, headers, bytes } = await get(link)
    t.equal(status, 200)
    t.ok(bytes.equals(FILM))
    t.match(Object.fromEntries(headers), {
      'content-type': 'video/mp4',
      'content-length': String(FILM_BYTES),
      'content-disposition': 'inline; filename="film.mp4"',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'cache-control': /^private, max-age=8\d{4}$/,
      'x-gateway-trace': /^req_/,
    })
  }
})

t.test('HEAD says the same without the body', async (t) => {
  const { get, store } = await withFilm(t)
  const link = store.permanentLink('videos/film.mp4')
  const whole = await get(link)
  const { status, headers, bytes } = await get(link, {}, 'HEAD')
  t.equal(status, 200)
  t.equal(bytes.length, 0)
  for (const name of ['content-type', 'content-length', 'etag', 'content-disposition'])
    t.equal(headers.get(name), whole.headers.get(name), name)
})

t.test('parts of it', async (t) => {
  const { get, store } = await withFilm(t)
  const link = store.permanentLink('videos/film.mp4')
  const parts: ReadonlyArray<readonly [string, number, number]> = [
    ['bytes=0-0', 0, 0],
    ['bytes=0-65535', 0, 65_535],
    ['bytes=1000-', 1000, FILM_BYTES - 1],
    ['bytes=-500', FILM_BYTES - 500, FILM_BYTES - 1],
    ['bytes=-9000000', 0, FILM_BYTES - 1],
    ['bytes=299999-400000', 299_999, 299_999],
  ]
  for (const [range, first, last] of parts) {
    const { status, headers, bytes } = await get(link, { range })
    t.equal(status, 206, range)
    t.equal(headers.get('content-range'), `bytes ${first}-${last}/${FILM_BYTES}`)
    t.ok(bytes.equals(FILM.subarray(first, last + 1)), range)
  }
  for (const range of ['bytes=5-1', 'bytes=-', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=a-b'])
    t.equal((await get(link, { range })).status, 200, `${range} is not understood: all of it`)
  for (const range of ['bytes=300000-', 'bytes=300000-300001', 'bytes=-0']) {
    const { status, headers, bytes } = await get(link, { range })
    t.equal(status, 416, range)
    t.equal(headers.get('content-range'), `bytes */${FILM_BYTES}`)
    t.match(JSON.parse(String(bytes)), { error: { code: 'invalid_request', message: /300000 bytes/ } })
  }
})

t.test('what a client has already is not sent again; a part of something else is no part', async (t) => {
  const { get, store } = await withFilm(t)
  const link = store.permanentLink('videos/film.mp4')
  const etag = (await get(link)).headers.get('etag') ?? ''
  for (const known of [etag, `"x", W/${etag}`, '*']) {
    const { status, bytes } = await get(link, { 'if-none-match': known })
    t.equal(status, 304, known)
    t.equal(bytes.length, 0)
  }
  t.equal((await get(link, { 'if-none-match': '"other"' })).status, 200)
  t.equal((await get(link, { range: 'bytes=0-9', 'if-range': etag })).status, 206)
  t.equal((await get(link, { range: 'bytes=0-9', 'if-range': '"other"' })).status, 200)
})

t.test('a link ends with its instant, and is good for nothing else', async (t) => {
  let now = 1_800_000_000_000
  const { get, store } = await withFilm(t, () => now)
  await store.put('videos/other.mp4', Buffer.from('other'), film)
  const link = await store.link('videos/film.mp4', now + DAY_MS)
  const permanent = store.permanentLink('videos/film.mp4')
  const refusal = async (url: string) => {
    const { status, bytes } = await get(url)
    return { status, ...JSON.parse(String(bytes)).error }
  }
  now += DAY_MS - 1
  t.match((await get(link)).headers.get('cache-control'), 'private, max-age=0')
  now += 1
  t.match(await refusal(link), { status: 403, code: 'permission_denied', message: /expired.*fresh one/ })
  t.equal((await get(permanent)).status, 200)
  now -= DAY_MS
  const forged = [
    link.replace('film.mp4', 'other.mp4'),
    link.replace(/expires=\d+/, (text) => `${text}0`),
    link.replace(/expires=\d+&/, ''),
    link.replace(/signature=.*/, ''),
    link.replace(/(signature=.*)./, '$1'),
    `${link}A`,
    link.replace(/signature=.*/, `signature=${'A'.repeat(43)}`),
    permanent.replace('?', '?expires=9999999999&'),
    permanent.replace('film.mp4', 'other.mp4'),
    fileLinks(PUBLIC_URL, linkKey(randomBytes(32))).print('videos/film.mp4', null),
    `${PUBLIC_URL}/files/a?signature=x`,
  ]
  for (const url of forged)
    t.match(await refusal(url), { status: 403, code: 'permission_denied', message: /not valid/ }, url)
  t.match(await refusal(store.permanentLink('videos/gone.mp4')), { status: 404, code: 'not_found' })
})

t.test('what a browser might run is a download; an empty file is one too', async (t) => {
  const { get, store } = await withFilm(t)
  await store.put('inputs/page', Buffer.from('<script>'), { ...film, mediaType: 'text/html' })
  await store.put('images/none.png', Buffer.alloc(0), { ...film, mediaType: 'image/png' })
  const page = await get(store.permanentLink('inputs/page'))
  t.equal(page.headers.get('content-disposition'), 'attachment; filename="page"')
  t.match(page.headers.get('content-security-policy'), 'sandbox')
  await store.put(SOURCE, Buffer.from('%PDF-'), { ...film, mediaType: 'application/pdf' })
  const { headers } = await get(store.permanentLink(SOURCE))
  t.equal(headers.get('content-disposition'), 'attachment; filename="handbook.pdf"')
  t.match(await get(store.permanentLink('images/none.png')), { status: 200, bytes: { length: 0 } })
})

t.test('a slow reader pauses the disk, and gets every byte; one that leaves lets the file go', async (t) => {
  const { store, folder, local, port } = await withFilm(t)
  const long = randomBytes(24 * 1024 * 1024)
  await store.put('videos/other.mp4', long, film)
  const url = new URL(local(store.permanentLink('videos/other.mp4')))
  const pieces: Buffer[] = []
  await new Promise<void>((done, fail) => {
    request(url, (response) => {
      response.on('data', (piece: Buffer) => {
        pieces.push(piece)
        if (pieces.length % 40 !== 0) return
        response.pause()
        setTimeout(() => response.resume(), 5)
      })
      response.on('end', done)
      response.on('error', fail)
    }).end()
  })
  t.ok(Buffer.concat(pieces).equals(long))

  const leaver = new RawClient(port)
  leaver.send(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: t\r\n\r\n`)
  await until(() => leaver.received.length > 1000)
  leaver.socket.destroy()
  await leaver.gone
  await until(() => openFiles(folder) === 0)
  t.pass('no file of the folder is open any more')
})

t.test('a file that is cut short has its connection cut', async (t) => {
  const { store } = await withFilm(t)
  const short: ObjectStore = Object.assign(Object.create(store), {
    head: async () => ({ bytes: FILM_BYTES + 1, mediaType: 'video/mp4' }),
    get: (key: string) => store.get(key),
  })
  const { get } = await served(t, short)
  await t.rejects(get(store.permanentLink('videos/film.mp4')))
})

t.test('a store that does not answer is no fault of the link, nor one that nobody foresaw', async (t) => {
  const { store } = await withFilm(t)
  const away = async () => {
    throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
  }
  for (const fault of [{ head: away }, { get: away }]) {
    const { get, unforeseen } = await served(t, Object.assign(Object.create(store) as ObjectStore, fault))
    const { status, bytes } = await get(store.permanentLink('videos/film.mp4'))
    t.match({ status, body: String(bytes) }, { status: 503, body: /service_unavailable/ })
    t.notMatch(String(bytes), '10.0.0.5')
    t.match(unforeseen, { length: 0 })
  }
})

t.test('a bucket sends its own files: the lasting link leads to a fresh one of its own', async (t) => {
  const { store } = await bucketStore(t)
  await store.put('videos/film.mp4', FILM, film)
  const { get } = await served(t, store)
  const { status, headers } = await get(store.permanentLink('videos/film.mp4'))
  t.equal(status, 302)
  t.equal(headers.get('cache-control'), 'no-store')
  const opened = await fetch(headers.get('location') ?? '')
  t.ok(Buffer.from(await opened.arrayBuffer()).equals(FILM))
  t.equal((await get(store.permanentLink('videos/gone.mp4'))).status, 404)
})
