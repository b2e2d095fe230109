import { ResponseParser } from '../../../src/upstream/response/parser.ts'

const MAX_BODY_BYTES = 100_000

export interface Parsed {
  status: number
  fields: [string, string][]
  body: string
  /** `open`, `done`, or the kind of a failure. */
  outcome: string
  reusable: boolean
  /** Bytes that came after the end of the response. */
  foreignBytes: number
}

export interface ParseOptions {
  readonly isHead?: boolean
  /** The peer closes after the last piece. */
  readonly closed?: boolean
}

/** Feeds the pieces one by one, each from a fresh copy in the middle of a larger buffer, as a read buffer would be. */
export function parsePieces(pieces: readonly Buffer[], options: ParseOptions = {}): Parsed {
  const parser = new ResponseParser()
  parser.start(options.isHead ?? false, MAX_BODY_BYTES)
  const parsed: Parsed = {
    status: 0,
    fields: [],
    body: '',
    outcome: 'open',
    reusable: false,
    foreignBytes: 0,
  }
  const take = (buffer: Buffer): void => {
    if (parser.headReady) {
      parsed.status = parser.status
      parsed.fields = [...parser.headers!].map(([name, value]) => [name, value])
    }
    parsed.body += buffer.toString('latin1', parser.dataFrom, parser.dataTo)
    if (parser.fault !== null) parsed.outcome = parser.fault.kind
    else if (parser.done) parsed.outcome = 'done'
  }
  for (const piece of pieces) {
    if (parser.done) parsed.foreignBytes += piece.length
    if (parser.done || parser.fault !== null || piece.length === 0) continue
    const buffer = Buffer.concat([Buffer.from('before'), piece, Buffer.from('after')])
    const from = 'before'.length
    parser.read(buffer, from, from + piece.length)
    take(buffer)
    if (parser.done) parsed.foreignBytes = from + piece.length - parser.rest
  }
  if (options.closed === true && parsed.outcome === 'open') {
    parser.end()
    take(Buffer.alloc(0))
  }
  parsed.reusable = parsed.outcome === 'done' && parser.reusable
  return parsed
}

/** Every way to cut the text in two, and the text in single bytes. */
export function* everySplit(text: string): Generator<{ where: string; pieces: Buffer[] }> {
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at <= bytes.length; at++) {
    yield { where: `at byte ${at}`, pieces: [bytes.subarray(0, at), bytes.subarray(at)] }
  }
  yield { where: 'at every byte', pieces: Array.from(bytes, (byte) => Buffer.from([byte])) }
}
