import type { Random } from './random.ts'

/** What a server answers to one request, and how it brings it. */
export interface HostileCase {
  readonly method: 'GET' | 'HEAD'
  readonly pieces: readonly Buffer[]
  /** After the last piece: close at once, or a moment later. */
  readonly closesAtOnce: boolean
}

const STATUS_LINES = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200',
  'HTTP/1.1 200 ',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 429 Too Many Requests',
  'HTTP/1.1 599 caf\u00e9',
  'HTTP/1.1 101 Switching Protocols',
  'HTTP/1.1 999 Far',
  'HTTP/2.0 200 OK',
  'HTTP/0.9 200 OK',
  'ICY 200 OK',
]

const PLAIN_FIELDS = [
  'content-type: text/event-stream',
  'X-Request-Id: req_1',
  'date: Thu, 01 Jan 2026 00:00:00 GMT',
  'set-cookie: a=1',
  'set-cookie: b=2; path=/',
  'x-empty:',
  'x-blank:   ',
  'x-text: \tcaf\u00e9 \t',
  'Keep-Alive: timeout=5, max=100',
  'connection: keep-alive',
]

const HOSTILE_FIELDS = [
  'connection: close',
  'connection: upgrade',
  'Connection: keep-alive, close',
  'upgrade: websocket',
  'proxy-connection: keep-alive',
  'content-length: 0',
  'content-length: 5',
  'Content-Length:5',
  'content-length: 05',
  'content-length: -5',
  'content-length: +5',
  'content-length: 5,5',
  'content-length: 0x5',
  'content-length: 5 ',
  'content-length: 18446744073709551615',
  'content-length : 5',
  'content-length\t: 5',
  'transfer-encoding: chunked',
  'Transfer-Encoding: CHUNKED',
  'transfer-encoding:chunked ',
  'transfer-encoding: identity',
  'transfer-encoding: gzip, chunked',
  'transfer-encoding: chunked, gzip',
  'transfer-encoding: chunked, chunked',
  'transfer-encoding: xchunked',
  'transfer_encoding: chunked',
  'transfer-encoding : chunked',
  ' folded: line',
  '\tfolded',
  'no colon',
  ': no name',
  'x: nul \0',
  'x: bell \x07',
  'x: cr \r in value',
  'x: del \x7f',
  'x\u00e9: obs-text name',
  'x(y): delimiter in name',
]

const SNIPPETS = [
  '\r\n',
  '\n',
  '\r',
  '\r\n\r\n',
  '\n\n',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '"',
  '0',
  'f',
  '-',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  'content-length: 3\r\n',
  'transfer-encoding: chunked\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled',
]

const INTERESTING_BYTES = [0, 9, 10, 13, 32, 34, 44, 45, 48, 53, 58, 59, 61, 92, 102, 127, 128, 255]

const CHUNK_EXTENSIONS = [
  '',
  '',
  '',
  '',
  ';a',
  ';a=b',
  ';a="b c"',
  ';a="\\""',
  '; a',
  ' ;a',
  ' ',
  ';',
  ';a=',
  ';a=b;c',
]

function text(random: Random): string {
  return 'data: tokens\n\n'.repeat(1 + random.below(3)).slice(random.below(10))
}

function chunkedBody(random: Random): string {
  let body = ''
  for (let chunks = random.below(4); chunks > 0; chunks--) {
    const data = text(random)
    const hex = data.length.toString(16)
    const size = random.chance(20) ? `00${hex.toUpperCase()}` : hex
    body += `${size}${random.chance(30) ? random.pick(CHUNK_EXTENSIONS) : ''}\r\n${data}\r\n`
  }
  const trailers = random.chance(25)
    ? random.pick(['x-digest: abc\r\n', 'a:\r\nb: c\r\n', 'content-length: 5\r\n'])
    : ''
  return `${body}0\r\n${trailers}\r\n`
}

function response(random: Random): string {
  const fields: string[] = []
  for (let count = random.below(4); count > 0; count--) fields.push(random.pick(PLAIN_FIELDS))
  if (random.chance(15)) fields.push(random.pick(HOSTILE_FIELDS))
  if (random.chance(5)) fields.push(random.pick(HOSTILE_FIELDS))
  let body = ''
  const framing = random.below(10)
  if (framing < 4) {
    body = text(random)
    fields.splice(random.below(fields.length + 1), 0, `Content-Length: ${body.length}`)
  } else if (framing < 8) {
    body = chunkedBody(random)
    fields.splice(random.below(fields.length + 1), 0, 'Transfer-Encoding: chunked')
  } else if (framing < 9) body = text(random)
  const statusLine = random.chance(75) ? 'HTTP/1.1 200 OK' : random.pick(STATUS_LINES)
  return [statusLine, ...fields, '', body].join('\r\n')
}

function mutate(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1)
  const to = Math.min(bytes.length, at + 1 + random.below(12))
  const before = bytes.subarray(0, at)
  switch (random.below(5)) {
    case 0:
      return Buffer.concat([before, Buffer.from([random.pick(INTERESTING_BYTES)]), bytes.subarray(at + 1)])
    case 1:
      return Buffer.concat([before, bytes.subarray(to)])
    case 2:
      return Buffer.concat([before, bytes.subarray(at, to), bytes.subarray(at)])
    case 3:
      return Buffer.concat([before, Buffer.from(random.pick(SNIPPETS), 'latin1'), bytes.subarray(at)])
    default:
      return before
  }
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  let from = 0
  for (let cuts = random.below(5); cuts > 0 && from < bytes.length; cuts--) {
    const to = from + 1 + random.below(bytes.length - from)
    pieces.push(bytes.subarray(from, to))
    from = to
  }
  if (from < bytes.length) pieces.push(bytes.subarray(from))
  return pieces
}

/** One answer: valid, nearly valid, or hostile. */
export function makeCase(random: Random): HostileCase {
  let whole = response(random)
  if (random.chance(10)) whole = `HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${whole}`
  if (random.chance(15)) whole += random.pick(SNIPPETS)
  let bytes = Buffer.from(whole, 'latin1')
  if (random.chance(45)) {
    for (let count = 1 + random.below(3); count > 0; count--) bytes = Buffer.from(mutate(random, bytes))
  }
  return {
    method: random.chance(10) ? 'HEAD' : 'GET',
    pieces: cut(random, bytes),
    closesAtOnce: random.chance(50),
  }
}
