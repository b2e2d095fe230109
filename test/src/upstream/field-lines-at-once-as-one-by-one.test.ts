/** Field lines that are read at once are those, and noted as those, that are read one by one. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { CR } from '../../../src/upstream/grammar.ts'
import { MAX_RESPONSE_HEADER_COUNT } from '../../../src/upstream/limits.ts'
import { FieldScanner, MORE, REFUSED } from '../../../src/upstream/response/field-scanner.ts'
import { ResponseHeaders } from '../../../src/upstream/response/headers.ts'
import { Random } from './random.ts'

const RUNS = 40_000
const LINES = [
  'content-length: 12',
  'Content-Length:7 ',
  'CONTENT-LENGTH: 1a',
  'transfer-encoding: chunked',
  'Transfer-Encoding: gzip',
  'connection: close',
  'Connection: keep-alive, upgrade',
  'keep-alive: timeout=5, max=100',
  'vary: origin',
  'content-type: application/json; charset=utf-8',
  'Content-Type:\ttext/event-stream \t ',
  'CONTENT-TYPE:',
  'content-encoding: gzip',
  'Content-Encoding:  caf\u00e9',
  'x-request-id: req_0',
  'x-request-id: req_0123456789abcdef0123456789abcdef',
  'x-a: caf\u00e9\tau lait',
  'x-empty:',
  "!#$%&'*+-.^_`|~: all that a name may hold",
]

interface Outcome {
  readonly end: number
  readonly fault: unknown
  readonly noted: unknown[]
}

const outcomeOf = (fields: FieldScanner, end: number): Outcome => ({
  end,
  fault: fields.fault,
  noted:
    end === REFUSED || end === MORE
      ? []
      : [fields.contentLength, fields.chunked, fields.close, fields.keepAlive, fields.keepAliveSeconds],
})

function oneByOne(bytes: Buffer, from: number): Outcome {
  const fields = new FieldScanner()
  let at = from
  while (at < bytes.length && bytes[at] !== CR) {
    at = fields.scan(bytes, at, bytes.length)
    if (at < 0) return outcomeOf(fields, at)
  }
  return bytes.toString('latin1', at, at + 2) === '\r\n' ? outcomeOf(fields, at + 2) : outcomeOf(fields, MORE)
}

function atOnce(bytes: Buffer, from: number): Outcome | null {
  const fields = new FieldScanner()
  const end = fields.scanAll(bytes, from, bytes.length)
  return end === 0 ? null : outcomeOf(fields, end)
}

const FRONT = 'HTTP/1.1 200 OK\r\n'

function headFrom(random: Random): Buffer {
  const lines = Array.from({ length: random.below(9) }, () => random.pick(LINES))
  const text = `${FRONT}${lines.map((line) => `${line}\r\n`).join('')}\r\n{"body":true}`
  const bytes = Buffer.from(text, 'latin1')
  for (let changes = random.below(3); changes > 0; changes--)
    bytes[FRONT.length + random.below(bytes.length - FRONT.length)] = random.below(256)
  return bytes.subarray(0, random.below(4) === 0 ? FRONT.length + random.below(bytes.length) : bytes.length)
}

t.test('whatever stands in them', async (t) => {
  let read = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const bytes = headFrom(new Random(seed))
    const whole = atOnce(bytes, FRONT.length)
    if (whole === null) continue
    read++
    const expected = oneByOne(bytes, FRONT.length)
    if (JSON.stringify(whole) === JSON.stringify(expected)) continue
    t.same(whole, expected, `seed ${seed}: ${JSON.stringify(bytes.toString('latin1'))}`)
    return
  }
  t.ok(read > RUNS / 4, 'many are read at once')
})

t.test('how a body is to be read is what a search of the lines finds', async (t) => {
  let read = 0
  for (let seed = 1; seed <= RUNS / 4; seed++) {
    const bytes = headFrom(new Random(seed))
    const fields = new FieldScanner()
    const end = fields.scanAll(bytes, FRONT.length, bytes.length)
    if (end <= 0) continue
    const text = bytes.toString('latin1', FRONT.length - 2, end - 2)
    const found = new ResponseHeaders(text)
    const noted = new ResponseHeaders(text, fields.contentType, fields.contentEncoding)
    read +=
      Number(typeof fields.contentType === 'string') + Number(typeof fields.contentEncoding === 'string')
    const isAlike =
      noted.contentType === found.get('content-type') &&
      noted.contentEncoding === found.get('content-encoding')
    if (isAlike) continue
    t.fail(`seed ${seed}: ${JSON.stringify(text)}`)
    return
  }
  t.ok(read > RUNS / 40, 'many say it once')
})

t.test('every byte in every place of a line, and no other is let through', async (t) => {
  const line = 'content-length: 123456'
  let read = 0
  for (let at = 0; at < line.length + 4; at++)
    for (let byte = 0; byte < 256; byte++) {
      const bytes = Buffer.from(`${line}\r\n\r\n`, 'latin1')
      bytes[at] = byte
      const whole = atOnce(bytes, 0)
      const expected = oneByOne(bytes, 0)
      read += Number(whole !== null)
      // What is left to be read one by one ends there as it always did; but nothing good is left.
      const isAlike = whole === null ? expected.end <= 0 : JSON.stringify(whole) === JSON.stringify(expected)
      if (isAlike) continue
      t.same(whole, expected, `byte ${byte} at ${at}`)
      return
    }
  t.ok(read > 0)
})

t.test('as many as a head may have, and not one more', async (t) => {
  const head = (lines: number) => Buffer.from(`${'x-a: b\r\n'.repeat(lines)}\r\n`)
  const most = head(MAX_RESPONSE_HEADER_COUNT)
  t.equal(atOnce(most, 0)?.end, most.length)
  t.equal(atOnce(head(MAX_RESPONSE_HEADER_COUNT + 1), 0), null)
})

t.test('a head that is longer than the scan limit is left to be read one by one', async (t) => {
  const bytes = Buffer.from(`x-a: ${'b'.repeat(5000)}\r\n\r\n`)
  t.equal(atOnce(bytes, 0), null)
  t.equal(oneByOne(bytes, 0).end, bytes.length)
})
