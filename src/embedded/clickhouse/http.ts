import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gunzip, gzip, inflate, zstdDecompress } from 'node:zlib'
import type { ChdbEngine, Outcome, Statement } from './engine.ts'
import { ClickHouseFailure } from './failure.ts'

/** The credentials of clients. */
interface Account {
  user: string
  password: string
}

const MAX_BODY_BYTES = 256 * 1024 * 1024
/** A second's work for the processor that saves nothing on a small answer. */
const COMPRESS_FROM_BYTES = 16 * 1024

/** Parameters of the HTTP interface itself; every other one in a request is a setting. */
const NOT_SETTINGS = new Set([
  'query',
  'query_id',
  'database',
  'user',
  'password',
  'default_format',
  'quota_key',
  'role',
  'session_id',
  'session_timeout',
  'session_check',
])
/** Settings of the server's HTTP layer, which the engine does not know. */
const HTTP_SETTING = /^(wait_end_of_query|enable_http_compression|send_progress_in_http_headers|http_\w+)$/

/** Answers one request as a ClickHouse server does: /ping, or a statement with its settings. Never fails. */
export async function respond(
  engine: ChdbEngine,
  account: Account,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.on('error', () => {
    // the client has left: no answer is sent
  })
  const url = new URL(request.url ?? '/', 'http://localhost')
  try {
    const isPing = url.pathname === '/ping' || (url.pathname === '/' && isBare(request, url))
    if (isPing) {
      response.setHeader('Content-Type', 'text/html; charset=UTF-8')
      response.end('Ok.\n')
      return
    }
    authenticate(account, request, url)
    const { statement, queryId, compressed } = await readStatement(request, url)
    response.setHeader('X-ClickHouse-Query-Id', queryId)
    const outcome = await engine.run(statement)
    await sendOutcome(response, statement, outcome, compressed)
  } catch (error) {
    sendFailure(response, ClickHouseFailure.from(error))
  }
}

function isBare(request: IncomingMessage, url: URL): boolean {
  return (request.method === 'GET' || request.method === 'HEAD') && !url.searchParams.has('query')
}

const AUTHENTICATION_FAILED = 516

function authenticate(account: Account, request: IncomingMessage, url: URL): void {
  const { authorization = '' } = request.headers
  const basic = /^Basic (.+)$/i.exec(authorization)?.[1]
  const decoded = basic === undefined ? null : Buffer.from(basic, 'base64').toString('utf8')
  const given =
    decoded ??
    [
      readHeader(request, 'x-clickhouse-user') ?? url.searchParams.get('user') ?? 'default',
      readHeader(request, 'x-clickhouse-key') ?? url.searchParams.get('password') ?? '',
    ].join(':')
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (timingSafeEqual(digest(given), digest(`${account.user}:${account.password}`))) return
  const user = given.slice(0, given.indexOf(':'))
  const text = `${user}: Authentication failed: password is incorrect, or there is no user with such name`
  throw new ClickHouseFailure(AUTHENTICATION_FAILED, 'AUTHENTICATION_FAILED', text)
}

async function readStatement(
  request: IncomingMessage,
  url: URL,
): Promise<{ statement: Statement; queryId: string; compressed: boolean }> {
  const given = new URLSearchParams(url.searchParams)
  let body = await readBody(request)
  if (request.headers['content-type']?.startsWith('multipart/form-data')) {
    for (const [name, value] of await readForm(request, body)) given.append(name, value)
    body = Buffer.alloc(0)
  }
  const query = given.get('query')
  const path = decodeURIComponent(url.pathname.slice(1))
  const parameters = new Map<string, string>()
  const settings = new Map<string, string>()
  for (const [name, value] of given) {
    if (name.startsWith('param_')) parameters.set(name.slice('param_'.length), value)
    else if (!NOT_SETTINGS.has(name) && !HTTP_SETTING.test(name)) settings.set(name, value)
  }
  const statement: Statement = {
    // A statement in the address is followed by its data; without one the whole body is the statement.
    sql: query ?? body.toString('utf8'),
    data: query === null || body.length === 0 ? null : body,
    parameters,
    settings,
    database:
      given.get('database') ?? readHeader(request, 'x-clickhouse-database') ?? (path === '' ? null : path),
    format: given.get('default_format') ?? readHeader(request, 'x-clickhouse-format') ?? 'TabSeparated',
    readOnly: request.method !== 'POST',
  }
  const accepts = request.headers['accept-encoding']?.includes('gzip') ?? false
  return {
    statement,
    queryId: given.get('query_id') ?? randomUUID(),
    compressed: accepts && given.get('enable_http_compression') === '1',
  }
}

type Decompress = (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const DECOMPRESSORS = new Map<string, Decompress>([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['zstd', promisify(zstdDecompress)],
])

const TOO_MANY_BYTES = 307
const UNKNOWN_COMPRESSION_METHOD = 89

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) {
      const text = `The body is larger than ${MAX_BODY_BYTES} bytes`
      throw new ClickHouseFailure(TOO_MANY_BYTES, 'TOO_MANY_BYTES', text)
    }
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity' || body.length === 0) return body
  const decompress = DECOMPRESSORS.get(encoding)
  if (decompress !== undefined) return decompress(body, { maxOutputLength: MAX_BODY_BYTES })
  const text = `Unknown compression method ${encoding}`
  throw new ClickHouseFailure(UNKNOWN_COMPRESSION_METHOD, 'UNKNOWN_COMPRESSION_METHOD', text)
}

/** Reads a form. The client sends long parameters as one, each in a separate part. */
async function readForm(request: IncomingMessage, body: Buffer): Promise<Array<[string, string]>> {
  const type = request.headers['content-type'] ?? ''
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  const fields: Array<[string, string]> = []
  for (const [name, value] of form)
    fields.push([name, typeof value === 'string' ? value : await value.text()])
  return fields
}

async function sendOutcome(
  response: ServerResponse,
  statement: Statement,
  outcome: Outcome,
  compressed: boolean,
): Promise<void> {
  const summary = {
    read_rows: String(outcome.readRows),
    read_bytes: String(outcome.readBytes),
    written_rows: String(outcome.writtenRows),
    written_bytes: String(outcome.writtenBytes),
    elapsed_ns: String(Math.round(outcome.elapsedSeconds * 1e9)),
  }
  response.setHeader('X-ClickHouse-Summary', JSON.stringify(summary))
  response.setHeader('X-ClickHouse-Format', statement.format)
  response.setHeader('X-ClickHouse-Timezone', 'UTC')
  response.setHeader('Content-Type', findContentType(statement.format))
  if (!compressed || outcome.bytes.length < COMPRESS_FROM_BYTES) {
    response.end(outcome.bytes)
    return
  }
  const body = await promisify(gzip)(outcome.bytes)
  response.setHeader('Content-Encoding', 'gzip')
  response.end(body)
}

function findContentType(format: string): string {
  if (format.startsWith('JSON')) return 'application/json; charset=UTF-8'
  if (format.startsWith('CSV')) return 'text/csv; charset=UTF-8'
  return 'text/tab-separated-values; charset=UTF-8'
}

function sendFailure(response: ServerResponse, failure: ClickHouseFailure): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.statusCode = failure.status
  response.setHeader('X-ClickHouse-Exception-Code', String(failure.code))
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8')
  response.end(failure.body)
}

function readHeader(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name]
  return typeof value === 'string' ? value : null
}
