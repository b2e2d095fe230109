/** A body reaches its pipeline byte for byte, announced or in chunks, in one piece or in many. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { clientOn, head, isWhole, serve, statusOf, whole } from './support.ts'

const MIB = 1024 * 1024

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** No two places of it are alike for long. */
const bodyOf = (length: number): Buffer => {
  const body = Buffer.alloc(length)
  for (let i = 0; i < length; i++) body[i] = (i * 31 + (i >> 8) * 17 + (i >> 16)) & 0xff
  return body
}

const inChunks = (body: Buffer, size: number): Buffer => {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size)
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')])
}

t.test('announced and in chunks', async (t) => {
  const { port } = await serve(t, { 'POST /digest': ({ body }) => whole(digest(body)) })
  const answerTo = async (request: Buffer[]) => {
    const client = clientOn(t, port)
    for (const piece of request) {
      client.send(piece)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    const text = await client.until(isWhole)
    t.equal(statusOf(text), 200)
    return text.slice(text.indexOf('\r\n\r\n') + 4)
  }
  for (const length of [0, 1, 4096, 65_536, 700_000, MIB, MIB + 1, 3 * MIB]) {
    const body = bodyOf(length)
    const announced = Buffer.from(head('POST /digest', `content-length: ${length}`))
    const chunked = Buffer.from(head('POST /digest', 'transfer-encoding: chunked'))
    const third = Math.ceil(length / 3)
    const pieces = [body.subarray(0, third), body.subarray(third, 2 * third), body.subarray(2 * third)]
    t.equal(await answerTo([Buffer.concat([announced, body])]), digest(body), `${length} announced`)
    t.equal(await answerTo([announced, ...pieces]), digest(body), `${length} announced, in pieces`)
    t.equal(
      await answerTo([Buffer.concat([chunked, inChunks(body, 50_000)])]),
      digest(body),
      `${length} in chunks`,
    )
  }
})
