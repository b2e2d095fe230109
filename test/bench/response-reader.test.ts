import t from 'tap'
import { ResponseReader } from '../../bench/load/response-reader.ts'

interface Seen {
  status: number
  body: string
  ended: boolean
}

const reading = (): { reader: ResponseReader; seen: Seen[] } => {
  const seen: Seen[] = []
  const reader = new ResponseReader({
    head: (status) => {
      seen.push({ status, body: '', ended: false })
    },
    body: (piece) => {
      seen.at(-1)!.body += piece.toString()
    },
    end: () => {
      seen.at(-1)!.ended = true
    },
  })
  return { reader, seen }
}

const FIXED = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const CHUNKED =
  'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: 1\r\n\r\n'
const EMPTY = 'HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n'

t.test('responses are the same however their bytes are cut', async (t) => {
  const bytes = Buffer.from(FIXED + CHUNKED + EMPTY + FIXED)
  for (let size = 1; size <= bytes.length; size++) {
    const { reader, seen } = reading()
    for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size))
    t.same(
      seen,
      [
        { status: 200, body: 'hello', ended: true },
        { status: 201, body: 'abc0123456789', ended: true },
        { status: 204, body: '', ended: true },
        { status: 200, body: 'hello', ended: true },
      ],
      `cut at every ${size} bytes`,
    )
    t.ok(reader.idle)
  }
})

t.test('a response that is not over is not idle', async (t) => {
  const { reader, seen } = reading()
  reader.read(Buffer.from(FIXED.slice(0, -1)))
  t.notOk(reader.idle)
  t.equal(seen[0]!.ended, false)
})

for (const [what, text] of [
  ['another protocol', 'SMTP ready\r\n\r\n'],
  ['neither length nor chunks', 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'],
  ['a chunk size that is no number', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n'],
  ['a chunk longer than its size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n'],
  ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`],
] as const)
  t.test(`${what} is an error`, async (t) => {
    t.throws(() => reading().reader.read(Buffer.from(text)))
  })
