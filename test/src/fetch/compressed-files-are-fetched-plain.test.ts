import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { guardedFetch } from '../../../src/fetch/guarded-fetch.ts'
import { serveHttp } from '../../support/http-server.ts'

const here = { isAllowed: (address: string) => address === '127.0.0.1' }
const PICTURE = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100_000, 1)])

/** As an object store serves an object that was put with this coding, whatever a client accepts. */
const ANSWERS: Readonly<Record<string, readonly [coding: string, bytes: Buffer]>> = {
  '/gzip': ['gzip', gzipSync(PICTURE)],
  '/old': ['X-GZIP', gzipSync(PICTURE)],
  '/deflate': ['deflate', deflateSync(PICTURE)],
  '/br': ['br', brotliCompressSync(PICTURE)],
  '/zstd': ['zstd', zstdCompressSync(PICTURE)],
  '/identity': ['identity', PICTURE],
  '/aws': ['aws-chunked', PICTURE],
  '/both': ['gzip,aws-chunked', gzipSync(PICTURE)],
  '/twice': ['gzip, gzip', gzipSync(gzipSync(PICTURE))],
  '/unknown': ['compress', PICTURE],
  '/cut': ['gzip', gzipSync(PICTURE).subarray(0, 60)],
  '/wrong': ['gzip', Buffer.alloc(1_000_000, 1)],
  '/wrong-br': ['br', Buffer.alloc(1_000_000, 1)],
  '/wrong-zstd': ['zstd', Buffer.alloc(1_000_000, 1)],
}

t.test('a file that is stored compressed is fetched as it was before', async (t) => {
  const url = await serveHttp(t, (request, response) => {
    const [coding, bytes] = ANSWERS[request.url ?? '']!
    response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': coding }).end(bytes)
  })
  for (const path of ['/gzip', '/old', '/deflate', '/br', '/zstd', '/identity', '/aws', '/both', '/twice']) {
    const { bytes, mediaType } = await guardedFetch(url + path, here)
    t.ok(bytes.equals(PICTURE), path)
    t.equal(mediaType, 'image/png')
  }
  await t.rejects(guardedFetch(`${url}/unknown`, here), { message: /its coding "compress" is not known/ })
  for (const path of ['/cut', '/wrong', '/wrong-br', '/wrong-zstd']) {
    const message = `The file at ${url}${path} cannot be fetched: it is not valid ${ANSWERS[path]![0]}.`
    await t.rejects(guardedFetch(url + path, here), { message }, path)
  }
})

t.test('the limit is of the bytes that come out', async (t) => {
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const url = await serveHttp(t, (_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
  })
  t.ok(bomb.length < 20_000)
  await t.rejects(guardedFetch(url, { ...here, maxBytes: 20_000 }), { message: /larger than 20000 bytes/ })
})
