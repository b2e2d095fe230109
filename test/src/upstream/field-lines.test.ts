/** Field lines of a head are read as the grammar of RFC 9112 has them, in whatever pieces they come. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { MAX_RESPONSE_HEADER_COUNT } from '../../../src/upstream/limits.ts'
import { FieldScanner, REFUSED } from '../../../src/upstream/response/field-scanner.ts'
import { ResponseHeaders } from '../../../src/upstream/response/headers.ts'
import { Random } from './random.ts'

const RUNS = 10_000
const LINES = [
  'content-length: 12',
  'Content-Length:7 ',
  'transfer-encoding: chunked',
  'connection: close',
  'Connection: keep-alive, upgrade',
  'keep-alive: timeout=5, max=100',
  'vary: origin',
  'content-type: application/json; charset=utf-8',
  'Content-Type:\ttext/event-stream \t ',
  'CONTENT-TYPE:',
  'content-encoding: gzip',
  'Content-Encoding:  caf\u00e9',
  'x-request-id: req_0123456789abcdef0123456789abcdef',
  'x-a: caf\u00e9\tau lait',
  'x-empty:',
  "!#$%&'*+-.^_`|~: all that a name may hold",
]

/** The whole lines at the beginning of a text, in latin1. */
const WHOLE_LINES = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*/

const noted = (fields: FieldScanner) => [
  fields.contentLength,
  fields.chunked,
  fields.close,
  fields.keepAlive,
  fields.keepAliveSeconds,
  fields.contentType,
  fields.contentEncoding,
]

const linesFrom = (random: Random): string =>
  `${Array.from({ length: random.below(9) }, () => `${random.pick(LINES)}\r\n`).join('')}\r\n`

t.test('as many lines are read as the grammar allows, with any bytes changed', async (t) => {
  let refused = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = new Random(seed)
    const bytes = Buffer.from(linesFrom(random), 'latin1')
    for (let changes = random.below(3); changes > 0; changes--)
      bytes[random.below(bytes.length)] = random.below(256)
    const text = bytes.toString('latin1')
    const [whole] = WHOLE_LINES.exec(text)!
    const fields = new FieldScanner()
    const end = fields.scan(bytes, 0, bytes.length)
    const isAlike =
      end === REFUSED
        ? fields.fault !== null
        : end === whole.length && (text[end] === '\r' || !text.slice(end).includes('\r\n'))
    // The grammar says nothing of values: two lengths are refused all the same.
    const mayBeRefused = !text.slice(whole.length).startsWith('\r') || /length|encoding/i.test(text)
    refused += Number(end === REFUSED)
    if (isAlike && (end !== REFUSED || mayBeRefused)) continue
    t.fail(`seed ${seed}: ${end} in ${JSON.stringify(text)}`)
    return
  }
  t.ok(refused > RUNS / 20)
})

t.test('lines in pieces are noted like whole ones', async (t) => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = new Random(seed)
    const bytes = Buffer.from(linesFrom(random), 'latin1')
    const atOnce = new FieldScanner()
    const inPieces = new FieldScanner()
    const end = atOnce.scan(bytes, 0, bytes.length)
    let line = 0
    for (let to = 0; to < bytes.length && line !== REFUSED; ) {
      to = Math.min(bytes.length, to + 1 + random.below(40))
      line = inPieces.scan(bytes, line, to)
    }
    if (line === end && JSON.stringify(noted(inPieces)) === JSON.stringify(noted(atOnce))) continue
    t.same([line, ...noted(inPieces)], [end, ...noted(atOnce)], `seed ${seed}`)
    return
  }
})

t.test('the type and the coding of the body are what a search of the lines finds', async (t) => {
  let found = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const bytes = Buffer.from(linesFrom(new Random(seed)), 'latin1')
    const fields = new FieldScanner()
    const end = fields.scan(bytes, 0, bytes.length)
    if (end === REFUSED) continue
    const text = `\r\n${bytes.toString('latin1', 0, end)}`
    const searched = new ResponseHeaders(text)
    const read = new ResponseHeaders(text, fields.contentType, fields.contentEncoding)
    found +=
      Number(typeof fields.contentType === 'string') + Number(typeof fields.contentEncoding === 'string')
    if (
      read.contentType === searched.get('content-type') &&
      read.contentEncoding === searched.get('content-encoding')
    )
      continue
    t.fail(`seed ${seed}: ${JSON.stringify(text)}`)
    return
  }
  t.ok(found > RUNS / 10)
})

t.test('as many as a head may have, and not one more', async (t) => {
  const end = (lines: number) => {
    const bytes = Buffer.from('x-a: b\r\n'.repeat(lines))
    return new FieldScanner().scan(bytes, 0, bytes.length)
  }
  t.equal(end(MAX_RESPONSE_HEADER_COUNT), MAX_RESPONSE_HEADER_COUNT * 'x-a: b\r\n'.length)
  t.equal(end(MAX_RESPONSE_HEADER_COUNT + 1), REFUSED)
})
