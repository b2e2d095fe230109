/** Reading responses: heads, fields, bodies, and what is refused. */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Origin, renderHead, UpstreamClient } from '../../../src/upstream/client.ts'
import {
  MAX_CHUNK_EXTENSION_BYTES,
  MAX_INTERIM_RESPONSES,
  MAX_RESPONSE_HEAD_BYTES,
  MAX_RESPONSE_HEADER_COUNT,
  MAX_TRAILER_BYTES,
} from '../../../src/upstream/limits.ts'
import { FieldScanner, REFUSED } from '../../../src/upstream/response/field-scanner.ts'
import { ResponseHeaders } from '../../../src/upstream/response/headers.ts'
import { type HostileCase, makeCase } from './hostile-responses.ts'
import { everySplit, parsePieces } from './parse.ts'
import { Random } from './random.ts'
import { type RawServer, readRequests, startRawServer } from './raw-server.ts'
import { getRequest, run, TEST_DEADLINE_MS } from './recorded-calls.ts'
import { RECORDED_RESPONSES } from './recorded-responses.ts'
import { type Answer, askUndici } from './undici-oracle.ts'

t.test('response headers', async (t) => {
  const headers = new ResponseHeaders(
    '\r\nContent-Type: text/event-stream\r\nX-A:  1 \t\r\nx-empty:\r\nx-a: 2\r\nX-Text: \u00a0\u00c9: t\r\nlink: content-type: no\r\n',
  )

  t.test('found by lower-case name, blanks taken off, nothing else', async (t) => {
    t.equal(headers.get('content-type'), 'text/event-stream')
    t.equal(headers.get('x-empty'), '')
    t.equal(headers.get('x-text'), '\u00a0\u00c9: t')
    t.equal(headers.get('type'), undefined)
    t.equal(headers.get('a'), undefined)
    t.equal(headers.get('absent'), undefined)
  })

  t.test('repeated fields are joined by get', async (t) => {
    t.equal(headers.get('x-a'), '1, 2')
  })

  t.test('iteration gives every field in order', async (t) => {
    t.same(
      [...headers],
      [
        ['content-type', 'text/event-stream'],
        ['x-a', '1'],
        ['x-empty', ''],
        ['x-a', '2'],
        ['x-text', '\u00a0\u00c9: t'],
        ['link', 'content-type: no'],
      ],
    )
  })

  t.test('no fields at all', async (t) => {
    const none = new ResponseHeaders('\r\n')
    t.same([...none], [])
    t.equal(none.get('content-type'), undefined)
  })
})

t.test('field lines', async (t) => {
  // Field lines of a head are read as the grammar of RFC 9112 has them, in whatever pieces they come.
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
})

t.test('response parser refusal', async (t) => {
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
})

t.test('response parser split', async (t) => {
  for (const recorded of RECORDED_RESPONSES) {
    t.test(`${recorded.name}: split at every byte, same answer`, async (t) => {
      const whole = parsePieces([Buffer.from(recorded.text, 'latin1')], recorded)
      t.match(whole, { status: recorded.status, body: recorded.body, outcome: 'done', foreignBytes: 0 })
      t.equal(whole.reusable, recorded.reusable)
      const differing: string[] = []
      for (const { where, pieces } of everySplit(recorded.text)) {
        const parsed = parsePieces(pieces, recorded)
        if (JSON.stringify(parsed) !== JSON.stringify(whole)) differing.push(where)
      }
      t.same(differing, [])
    })

    t.test(`${recorded.name}: cut short at every byte, never taken for whole`, async (t) => {
      const bytes = Buffer.from(recorded.text, 'latin1')
      const bodyByClose = recorded.closed === true
      const headBytes = recorded.text.lastIndexOf('\r\n\r\n', recorded.text.length - recorded.body.length) + 4
      const limit = bodyByClose ? headBytes : bytes.length
      for (let length = 0; length < limit; length++) {
        const { outcome } = parsePieces([bytes.subarray(0, length)], { ...recorded, closed: true })
        t.equal(outcome, length === 0 ? 'closed' : 'truncated', `cut after ${length} bytes`)
      }
    })

    t.test(`${recorded.name}: bytes after the end are seen as foreign`, async (t) => {
      if (recorded.closed === true) {
        t.ok(
          parsePieces([Buffer.from(`${recorded.text}HTTP/1.1`, 'latin1')], recorded).body.endsWith(
            'HTTP/1.1',
          ),
        )
        return
      }
      const { foreignBytes, body } = parsePieces(
        [Buffer.from(`${recorded.text}HTTP/1.1`, 'latin1')],
        recorded,
      )
      t.equal(foreignBytes, 8)
      t.equal(body, recorded.body)
    })
  }
})

t.test('differential fuzz', async (t) => {
  /** Repeat one failing case with the seed it prints: UPSTREAM_FUZZ_SEED=… UPSTREAM_FUZZ_CASES=1 */
  const FIRST_SEED = Number(process.env.UPSTREAM_FUZZ_SEED ?? 1)
  const CASES = Number(process.env.UPSTREAM_FUZZ_CASES ?? 2_000)
  const WORKERS = 16
  /** How long the server leaves a connection open after an answer that does not close at once. */
  const LINGER_MS = 15

  /** Where this client accepts what undici refuses, and why that is right. Anything else fails the test. */
  const ACCEPTED_HERE_ONLY: ReadonlyArray<{
    readonly why: string
    readonly applies: (text: string, undici: Answer) => boolean
  }> = [
    {
      why: 'a 304 may name the length of the response it stands for (RFC 9110 8.6); undici waits for a body',
      applies: (_text, undici) =>
        undici.status === 304 && undici.reason.startsWith('ResponseContentLengthMismatchError'),
    },
    {
      why: '100 is an interim response like any other (RFC 9110 15.2); undici refuses it as it never expects one',
      applies: (text, undici) =>
        undici.reason === 'SocketError: bad response' && /HTTP\/1\.[01] 100[ \r]/.test(text),
    },
  ]

  class CaseServer {
    readonly cases = new Map<number, HostileCase>()
    readonly #written = new Map<string, () => void>()
    #server: RawServer | null = null

    async start(): Promise<void> {
      this.#server = await startRawServer((socket) => {
        readRequests(socket, async (request) => {
          const [, kind, number, caller] = request.split(' ')[1]!.split('/')
          if (kind === 'clean') {
            socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${number!.length}\r\n\r\n${number}`)
            return
          }
          const hostile = this.cases.get(Number(number))!
          for (const piece of hostile.pieces) {
            socket.write(piece)
            await turn()
          }
          if (!hostile.closesAtOnce) await sleep(LINGER_MS)
          socket.end()
          this.#written.get(`${number}/${caller}`)?.()
        })
      })
    }

    get origin(): Origin {
      return this.#server!.origin
    }

    /** Settles when the server has written all of a case to a caller, and closed. */
    written(number: number, caller: string): Promise<void> {
      return new Promise((resolve) => this.#written.set(`${number}/${caller}`, resolve))
    }

    async close(): Promise<void> {
      await this.#server?.close()
    }
  }

  async function askOurs(client: UpstreamClient, server: CaseServer, seed: number): Promise<Answer> {
    const { origin } = server
    const { method } = server.cases.get(seed)!
    const head = renderHead(method, `/case/${seed}/ours`, origin.authority, [], null)
    const log = await run(client, { origin, head, body: null, deadlineMs: TEST_DEADLINE_MS })
    return {
      accepted: log.ended,
      status: log.status,
      fields: [...(log.headers ?? [])].map(([name, value]) => `${name}: ${value}`),
      body: log.body,
      reason: log.failure?.message ?? '',
    }
  }

  /** The next call on the same client gets its own answer, whatever the last one left behind. */
  async function isClean(client: UpstreamClient, server: CaseServer, seed: number): Promise<boolean> {
    for (;;) {
      const log = await run(client, getRequest(server.origin, `/clean/${seed}/ours`))
      if (log.failure === null) return log.status === 200 && log.body === `${seed}`
      if (!log.failure.reused || log.failure.headReceived) return false
    }
  }

  interface Counts {
    bothAccept: number
    bothRefuse: number
    refusedHere: Map<string, number>
    acceptedHere: Map<string, number>
  }

  function compare(
    t: Test,
    hostile: HostileCase,
    ours: Answer,
    undici: Answer,
    counts: Counts,
    repeat: string,
  ): void {
    const text = Buffer.concat(hostile.pieces).toString('latin1')
    const shown = { method: hostile.method, text, closesAtOnce: hostile.closesAtOnce, ours, undici }
    if (ours.accepted && undici.accepted) {
      counts.bothAccept++
      const same =
        ours.status === undici.status &&
        ours.body === undici.body &&
        ours.fields.join('\n') === undici.fields.join('\n')
      if (!same) t.fail(`the two read it differently; ${repeat}`, shown)
    } else if (ours.accepted) {
      const known = ACCEPTED_HERE_ONLY.find(({ applies }) => applies(text, undici))
      if (known === undefined) t.fail(`accepted here only; ${repeat}`, shown)
      else counts.acceptedHere.set(known.why, (counts.acceptedHere.get(known.why) ?? 0) + 1)
    } else if (undici.accepted)
      counts.refusedHere.set(ours.reason, (counts.refusedHere.get(ours.reason) ?? 0) + 1)
    else counts.bothRefuse++
  }

  t.test('undici and this client agree on split, malformed and hostile responses', async (t) => {
    const server = new CaseServer()
    await server.start()
    t.teardown(() => server.close())
    const counts: Counts = { bothAccept: 0, bothRefuse: 0, refusedHere: new Map(), acceptedHere: new Map() }
    let next = FIRST_SEED
    const work = async (): Promise<void> => {
      const client = new UpstreamClient()
      while (next < FIRST_SEED + CASES) {
        const seed = next++
        const repeat = `UPSTREAM_FUZZ_SEED=${seed} UPSTREAM_FUZZ_CASES=1 repeats it`
        const hostile = makeCase(new Random(seed))
        server.cases.set(seed, hostile)
        const written = server.written(seed, 'ours')
        const [ours, undici] = await Promise.all([
          askOurs(client, server, seed),
          askUndici(server.origin, hostile.method, `/case/${seed}/undici`),
        ])
        compare(t, hostile, ours, undici, counts, repeat)
        await written
        await turn()
        await turn()
        if (!(await isClean(client, server, seed))) t.fail(`the next call got a foreign answer; ${repeat}`)
        if (client.readStats().inFlight !== 0) t.fail(`a call is left over; ${repeat}`)
        server.cases.delete(seed)
      }
      client.close()
      t.same({ open: client.readStats().open, idle: client.readStats().idle }, { open: 0, idle: 0 })
    }
    await Promise.all(Array.from({ length: WORKERS }, work))
    t.comment(counts)
    if (CASES > 1_000) {
      t.ok(counts.bothAccept > CASES / 4, 'enough cases are accepted to compare what was read')
      t.ok(counts.bothRefuse > CASES / 10, 'enough cases are refused')
    }
  })
})
