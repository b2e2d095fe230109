/**
 * A long body is kept only for a request whose key is good; the refusal reaches a client that is still sending, and the
 * connection goes on where the end of the body is certain.
 */
import t, { type Test } from 'tap'
import { answer } from '../../../pipelines/calls/answer.ts'
import { authenticate } from '../../../pipelines/calls/authenticate.ts'
import { pipeline } from '../../../pipelines/calls/pipeline.ts'
import type { Handler } from '../../../src/http/handler.ts'
import { apiKey, knownKey } from '../../support/known-key.ts'
import { clientOn, head, isWhole, serve, statusOf, until, whole } from './support.ts'

const MIB = 1024 * 1024
const BODY_BYTES = 4 * MIB
const PIECE = Buffer.alloc(64 * 1024, 'x')
const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')])

const keyOf = (letter: string) => `sk-tollgate-${letter.repeat(64)}`
const [GOOD, REVOKED, NEW, NOBODYS] = ['a', 'b', 'c', 'd'].map(keyOf) as [string, string, string, string]
const known = (enabled: boolean) => knownKey({ key: apiKey({ enabled }) })
const KNOWN = new Map([
  [GOOD, known(true)],
  [REVOKED, known(false)],
])

/** Look-ups of unknown keys wait for `answer`. */
async function start(t: Test) {
  const asked: string[] = []
  const gate = Promise.withResolvers<void>()
  const credentials = {
    peek: (rawKey: string) => KNOWN.get(rawKey),
    load: async (rawKey: string) => {
      asked.push(rawKey)
      await gate.promise
      return rawKey === NEW ? known(true) : null
    },
  }
  const guarded: Handler = pipeline(
    authenticate({ credentials, onSecretUsed: () => undefined }),
    answer(({ request }) => whole(`${request.body.length} bytes`)),
  )
  const served = await serve(t, { 'POST /guarded': guarded, 'GET /next': () => whole('next') })
  const client = (...fields: string[]) => {
    const raw = clientOn(t, served.port)
    return raw.send(head('POST /guarded', ...fields))
  }
  return { ...served, asked, answer: () => gate.resolve(), client }
}

const bearer = (key: string) => `authorization: Bearer ${key}`
const announced = `content-length: ${BODY_BYTES}`
const chunked = 'transfer-encoding: chunked'
const isAnswered = (text: string) => /\r\n\r\n[\s\S]*\}/.test(text)

t.test('without a good key the answer comes before the body does', async (t) => {
  const { client, seen, server } = await start(t)
  for (const length of [announced, chunked])
    for (const fields of [[], [bearer('sk-short')], [bearer(REVOKED)]]) {
      const raw = client(length, ...fields)
      t.equal(statusOf(await raw.until(isAnswered)), 401, `${length}, ${fields}`)
      raw.socket.destroy()
    }
  t.equal(seen.length, 0, 'no pipeline is asked')
  await until(() => server.inFlight === 0)
})

t.test('an announced body is let pass, and the next request is answered', async (t) => {
  const { client, seen } = await start(t)
  const raw = client(announced)
  for (let sent = 0; sent < BODY_BYTES; sent += PIECE.length) raw.send(PIECE)
  await raw.until(isAnswered)
  raw.send(head('GET /next'))
  const text = await raw.until((text) => text.endsWith('next'))
  t.match(text, /^HTTP\/1.1 401 [\s\S]*HTTP\/1.1 200 OK/)
  t.same(
    seen.map(({ path }) => path),
    ['/next'],
  )
})

t.test('a client that is sending chunks reads the whole answer', async (t) => {
  const { client, seen } = await start(t)
  const raw = client(chunked)
  for (let sent = 0; sent < BODY_BYTES; sent += PIECE.length) raw.send(CHUNK)
  const text = await raw.until(isAnswered)
  t.equal(statusOf(text), 401)
  t.match(text, /\r\nconnection: close\r\n/)
  for (let sent = 0; sent < BODY_BYTES; sent += PIECE.length) raw.send(CHUNK)
  raw.send(`0\r\n\r\n${head('GET /next')}`)
  await raw.gone
  t.equal(raw.text.split('HTTP/1.1 ').length, 2, 'nothing behind it is answered')
  t.equal(seen.length, 0)
})

t.test('while an unknown key is looked up, the connection is not read from', async (t) => {
  const { client, asked, answer, seen } = await start(t)
  const raws = [NEW, NOBODYS].map((key) => client(announced, bearer(key)))
  await until(() => asked.length === 2)
  const body = Buffer.alloc(8 * BODY_BYTES)
  for (const { socket } of raws) socket.write(body.subarray(0, BODY_BYTES))
  // More than a loopback connection holds stays with the client.
  const filler = client(`content-length: ${body.length - MIB}`, bearer(NEW))
  await until(() => asked.length === 3)
  filler.send(body.subarray(0, body.length - MIB))
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 5))
  t.ok(filler.socket.writableLength > 0, 'the client waits')
  t.equal(seen.length, 0)
  answer()
  const [good, refused] = await Promise.all(raws.map((raw) => raw.until(isWhole)))
  t.equal(statusOf(good!), 200)
  t.ok(good!.endsWith(`${BODY_BYTES} bytes`))
  t.equal(statusOf(refused!), 401)
  t.equal(statusOf(await filler.until(isWhole)), 413, 'read to its end, where its text is measured')
})

t.test('a body that comes whole with its head is answered once', async (t) => {
  const { asked, answer, port, seen } = await start(t)
  for (const [key, status] of [
    [NEW, 200],
    [NOBODYS, 401],
    [GOOD, 200],
    [REVOKED, 401],
  ] as const) {
    const raw = clientOn(t, port)
    const request = head('POST /guarded', bearer(key), 'content-length: 20000') + 'x'.repeat(20_000)
    raw.send(request)
    answer()
    t.equal(statusOf(await raw.until(isWhole)), status)
    raw.send(head('GET /next'))
    const text = await raw.until((text) => text.endsWith('next'))
    t.equal(text.split('HTTP/1.1 ').length, 3)
  }
  t.ok(asked.length >= 2)
  t.ok(seen.length >= 6)
})

t.test('a client that leaves during the look-up leaves nothing behind', async (t) => {
  const { client, asked, answer, server, unforeseen } = await start(t)
  const raw = client(announced, bearer(NEW))
  await until(() => asked.length === 1)
  raw.socket.destroy()
  await raw.gone
  answer()
  await until(() => server.inFlight === 0)
  t.same(unforeseen, [])
})
