/** A compressed body reaches its pipeline as if it had come plain; what cannot be decoded, or expands without end, does not. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { type Coding, decodedWhole, MAX_RATIO } from '../../../src/http/body-coding.ts'
import { ask, head, isWhole, serve, statusOf, whole } from './support.ts'

const UNCOUNTED = { take: () => null }
const MIB = 1024 * 1024
const ENCODERS: Readonly<Record<Coding, (plain: Buffer) => Buffer>> = {
  gzip: (plain) => gzipSync(plain),
  deflate: (plain) => deflateSync(plain),
  br: (plain) =>
    brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MIN_QUALITY } }),
  zstd: (plain) => zstdCompressSync(plain),
}
const CODINGS = Object.keys(ENCODERS) as Coding[]

const ECHO = {
  'POST /echo': ({ body }: { body: Buffer }) => whole(body),
  'POST /v1/messages': ({ body }: { body: Buffer }) => whole(body),
}
const request = (path: string, coding: string, body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(head(`POST ${path}`, `content-encoding: ${coding}`, `content-length: ${body.length}`)),
    body,
  ])

/** Compresses to about half. */
const textOf = (bytes: number): Buffer => Buffer.from(randomBytes(bytes / 2).toString('hex'))

t.test('each coding, under each of its names', async (t) => {
  const { port } = await serve(t, ECHO)
  const plain = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'ü'.repeat(3000) }] }))
  const names = [
    ...CODINGS.map((coding) => [coding, coding] as const),
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
  ] as const
  for (const [name, coding] of names) {
    const text = await ask(t, port, request('/echo', name, ENCODERS[coding](plain)), isWhole)
    t.equal(statusOf(text), 200, name)
    t.equal(text.slice(text.indexOf('\r\n\r\n') + 4), plain.toString('latin1'))
  }
  t.match(await ask(t, port, request('/echo', 'identity', Buffer.from('plain')), isWhole), /\r\n\r\nplain$/)
  t.match(await ask(t, port, request('/echo', 'gzip', Buffer.alloc(0)), isWhole), / 200 OK\r\n/, 'no body')
})

t.test('a coding that is not known, and two of them, are 415 and named', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  const bodies = [
    request('/v1/messages', 'compress', Buffer.from('{}')),
    request('/v1/messages', 'gzip, br', Buffer.from('{}')),
    request('/v1/messages', 'gzip\r\ncontent-encoding: gzip', gzipSync(gzipSync('{}'))),
    request('/v1/messages', 'constructor', Buffer.from('{}')),
  ]
  for (const body of bodies) {
    const text = await ask(t, port, body, isWhole)
    t.equal(statusOf(text), 415)
    t.match(text, /\r\naccept-encoding: gzip, deflate, br, zstd\r\n/)
    t.match(
      text,
      /\{"type":"error","error":\{"type":"invalid_request_error","message":"[^"]*Content-Encoding/,
    )
  }
  t.equal(seen.length, 0)
})

t.test('a body that is not so encoded is 400', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  for (const coding of CODINGS) {
    const encoded = ENCODERS[coding](textOf(10_000))
    const cutShort = encoded.subarray(0, 3000)
    // What comes of a zstd frame that is cut short is passed on, and is no JSON: the beginning of an object never is.
    for (const broken of [Buffer.from('{"model":"m"}'), ...(coding === 'zstd' ? [] : [cutShort])]) {
      const text = await ask(t, port, request('/v1/messages', coding, broken), isWhole)
      t.equal(statusOf(text), 400, coding)
      t.match(text, new RegExp(`"The request body is not valid ${coding}\\."`))
    }
  }
  t.equal(seen.length, 0)
})

t.test('the limit counts decoded bytes, and the ratio is bounded', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  for (const coding of CODINGS) {
    const encode = ENCODERS[coding]
    const text = textOf(MIB)
    t.strictSame(
      await decodedWhole(encode(text), coding, MIB, UNCOUNTED),
      text,
      `${coding}: as long as the limit`,
    )
    await t.rejects(decodedWhole(encode(textOf(MIB + 2)), coding, MIB, UNCOUNTED), {
      code: 'request_too_large',
    })
    const small = encode(Buffer.alloc(MIB))
    t.equal(
      (await decodedWhole(small, coding, 2 * MIB, UNCOUNTED)).length,
      MIB,
      'up to 1 MiB the ratio is free',
    )
    const bomb = encode(Buffer.alloc(30 * MIB))
    t.ok(bomb.length < (30 * MIB) / MAX_RATIO)
    const answer = await ask(t, port, request('/v1/messages', coding, bomb), isWhole)
    t.equal(statusOf(answer), 400)
    t.match(answer, /expands to more than 100 times its size/)
  }
  t.equal(seen.length, 0)
})

t.test('a body that expands most at its beginning is judged by all of it', async (t) => {
  const body = Buffer.concat([Buffer.alloc(2 * MIB), textOf(MIB)])
  t.strictSame(await decodedWhole(gzipSync(body), 'gzip', 4 * MIB, UNCOUNTED), body)
})
