import t from 'tap'
import {
  MAX_CHUNK_EXTENSION_BYTES,
  MAX_INTERIM_RESPONSES,
  MAX_RESPONSE_HEAD_BYTES,
  MAX_RESPONSE_HEADER_COUNT,
  MAX_TRAILER_BYTES,
} from '../../../src/upstream/limits.ts'
import { everySplit, parsePieces } from './parse.ts'

const head = (...fields: string[]): string =>
  `HTTP/1.1 200 OK\r\n${fields.map((f) => `${f}\r\n`).join('')}\r\n`
const chunked = (body: string): string => `${head('transfer-encoding: chunked')}${body}`

const MALFORMED: Record<string, string> = {
  'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
  'a blank line first': `\r\n${head('content-length: 0')}`,
  'HTTP/2': 'HTTP/2.0 200 OK\r\n\r\n',
  'HTTP/1.2': 'HTTP/1.2 200 OK\r\n\r\n',
  'lower-case protocol': 'http/1.1 200 OK\r\n\r\n',
  'two blanks before the status': 'HTTP/1.1  200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'a status above 599': 'HTTP/1.1 600 OK\r\n\r\n',
  'a status below 100': 'HTTP/1.1 099 OK\r\n\r\n',
  'a signed status': 'HTTP/1.1 +20 OK\r\n\r\n',
  'NUL in the reason': 'HTTP/1.1 200 O\0K\r\n\r\n',
  'bare LF after the status line': 'HTTP/1.1 200 OK\ncontent-length: 0\r\n\r\n',
  'bare LF after a field': 'HTTP/1.1 200 OK\r\ncontent-length: 0\n\r\n',
  'bare LF as the empty line': 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\n',
  'bare CR in a value': head('x: a\rb'),
  'CR without LF as the empty line': 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\rX',
  'a folded line': head('x: a', ' b'),
  'a tab-folded line': head('x: a', '\tb'),
  'a blank before the colon': head('content-length : 0'),
  'an empty name': head(': a'),
  'no colon': head('content-length'),
  'a name with a slash': head('a/b: c'),
  'a name with obs-text': head('caf\u00e9: c'),
  'NUL in a value': head('x: a\0b'),
  'DEL in a value': head('x: a\x7fb'),
  'ESC in a value': head('x: \x1b[2J'),
  'an empty length': head('content-length: '),
  'a negative length': head('content-length: -1'),
  'a signed length': head('content-length: +1'),
  'a hexadecimal length': head('content-length: 0x10'),
  'a length with a fraction': head('content-length: 1.0'),
  'a list of lengths': head('content-length: 5, 5'),
  'a length with a blank inside': head('content-length: 1 0'),
  'a length before a tab': head('content-length: 4\t'),
  'a length after a tab': head('content-length:\t4'),
  'a huge length': head('content-length: 99999999999999999999'),
  'two equal lengths': head('content-length: 5', 'Content-Length: 5'),
  'two different lengths': head('content-length: 5', 'content-length: 6'),
  'length and chunked': head('content-length: 5', 'transfer-encoding: chunked'),
  'chunked and length': head('transfer-encoding: chunked', 'content-length: 5'),
  'gzip, chunked': head('transfer-encoding: gzip, chunked'),
  'chunked, chunked': head('transfer-encoding: chunked, chunked'),
  'chunked twice': head('transfer-encoding: chunked', 'transfer-encoding: chunked'),
  xchunked: head('transfer-encoding: xchunked'),
  'chunked with a vertical tab': head('transfer-encoding: \x0bchunked'),
  identity: head('transfer-encoding: identity'),
  'an empty transfer-encoding': head('transfer-encoding:'),
  'chunked in HTTP/1.0': 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  '101': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n',
  '100 with a length': 'HTTP/1.1 100 Continue\r\ncontent-length: 5\r\n\r\n',
  '204 with a length': 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello',
  '204 with chunks': 'HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'a negative chunk size': chunked('-1\r\n'),
  'an empty chunk size': chunked('\r\n'),
  'a chunk size 0x5': chunked('0x5\r\nhello\r\n'),
  'a chunk size with a blank before': chunked(' 5\r\nhello\r\n'),
  'a chunk size with a blank after': chunked('5 \r\nhello\r\n'),
  'a chunk size that is no hex': chunked('5g\r\nhello\r\n'),
  'a chunk size ended by bare LF': chunked('5\nhello\r\n'),
  'a chunk size ended by CR X': chunked('5\rXhello\r\n'),
  'chunk data too long': chunked('5\r\nhello!\r\n'),
  'chunk data ended by bare LF': chunked('5\r\nhello\n'),
  'chunk data ended by CR CR': chunked('5\r\nhello\r\r\n'),
  'an extension with bare LF': chunked('5;a\nhello\r\n'),
  'an extension with bare LF in quotes': chunked('5;a="\n"\r\nhello\r\n'),
  'an extension without a name': chunked('5;\r\nhello\r\n'),
  'an extension without a value': chunked('5;a=\r\nhello\r\n'),
  'an extension with two equals': chunked('5;a=b=c\r\nhello\r\n'),
  'text after a quoted extension': chunked('5;a="b"c\r\nhello\r\n'),
  'a quote inside a token extension': chunked('5;a=b"c"\r\nhello\r\n'),
  'an unclosed quote': chunked('5;a="b\r\nhello\r\n'),
  'a folded trailer': chunked('0\r\na: b\r\n c\r\n\r\n'),
  'a length among the trailers': chunked('0\r\ncontent-length: 5\r\n\r\n'),
  'an encoding among the trailers': chunked('0\r\ntransfer-encoding: chunked\r\n\r\n'),
  'bare LF after the trailers': chunked('0\r\n\n'),
}

const TOO_LARGE: Record<string, string> = {
  'a long head': head(`x: ${'a'.repeat(MAX_RESPONSE_HEAD_BYTES)}`),
  'a long head without an end': `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(MAX_RESPONSE_HEAD_BYTES)}`,
  'a long reason': `HTTP/1.1 200 ${'a'.repeat(MAX_RESPONSE_HEAD_BYTES)}`,
  'too many fields': head(...Array.from({ length: MAX_RESPONSE_HEADER_COUNT + 1 }, (_, i) => `x${i}: a`)),
  'too many interim responses': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(MAX_INTERIM_RESPONSES + 1),
  'a length over the bound of the body': head('content-length: 100001'),
  'a chunk over the bound of the body': chunked('186A1\r\n'),
  'chunks over the bound of the body': chunked(`C350\r\n${'a'.repeat(50_000)}\r\nC351\r\n`),
  'a chunk size of nine digits': chunked('000000005\r\nhello\r\n'),
  'a long extension': chunked(`5;${'a'.repeat(MAX_CHUNK_EXTENSION_BYTES)}\r\n`),
  'long trailers': chunked(`0\r\nx: ${'a'.repeat(MAX_TRAILER_BYTES)}`),
  'a body by close over the bound': `${head('x: y')}${'a'.repeat(100_001)}`,
}

const EVERY_SPLIT_MAX_BYTES = 1_000

function refusals(kind: string, cases: Record<string, string>): void {
  for (const [name, text] of Object.entries(cases)) {
    t.test(`${name} is ${kind}`, async (t) => {
      t.equal(parsePieces([Buffer.from(text, 'latin1')], { closed: true }).outcome, kind)
      const splits = text.length <= EVERY_SPLIT_MAX_BYTES ? everySplit(text) : [...singleBytes(text)]
      for (const { where, pieces } of splits) {
        const { outcome } = parsePieces(pieces, { closed: true })
        if (outcome !== kind) t.equal(outcome, kind, `split ${where}`)
      }
    })
  }
}

function* singleBytes(text: string): Generator<{ where: string; pieces: Buffer[] }> {
  yield {
    where: 'at every byte',
    pieces: Array.from(Buffer.from(text, 'latin1'), (byte) => Buffer.from([byte])),
  }
}

refusals('malformed', MALFORMED)
refusals('too_large', TOO_LARGE)

t.test('a head of exactly the bound passes', async (t) => {
  const frame = head('content-length: 0', 'x: ').length
  const text = head('content-length: 0', `x: ${'a'.repeat(MAX_RESPONSE_HEAD_BYTES - frame)}`)
  t.equal(text.length, MAX_RESPONSE_HEAD_BYTES)
  for (const { pieces } of [{ pieces: [Buffer.from(text)] }, ...singleBytes(text)]) {
    t.equal(parsePieces(pieces).outcome, 'done')
  }
})

t.test('a body of exactly the bound passes', async (t) => {
  t.equal(
    parsePieces([Buffer.from(`${head('content-length: 100000')}${'a'.repeat(100_000)}`)]).outcome,
    'done',
  )
})
