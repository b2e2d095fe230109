/**
 * The Model Context Protocol over Streamable HTTP, without sessions: one request is one server, answered with JSON. All
 * of the protocol's own package is in this folder. See docs/api-rules.md, "MCP".
 */
import {
  createMcpHandler,
  isJSONRPCRequest,
  isLegacyRequest,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  type RequestId,
  Server,
  type StandardSchemaV1Sync,
  specTypeSchemas,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { Failure } from '../../schemas/failure.ts'
import { MCP_INSTRUCTIONS } from '../../schemas/knowledge/mcp.ts'
import { isTooDeep } from '../core/json/exact.ts'
import { MAX_JSON_LEVELS } from '../core/json/scanner/tape.ts'
import { callTool, TOOLS, type ToolSet } from './tools.ts'

/** One HTTP request of a known caller. Header values are as they came, empty where there is none. */
export interface McpRequest {
  readonly accept: string
  readonly contentType: string
  readonly protocolVersion: string
  /** What the body asks for, and by which name: revisions without a handshake repeat both in headers. */
  readonly method: string
  readonly name: string
  readonly body: Buffer
}

export interface McpAnswer {
  readonly status: number
  /** Empty where there is no body. */
  readonly contentType: string
  readonly body: string
}

export interface McpServer {
  /**
   * Answers a request, also with refusals of the protocol. `signal` ends the work.
   * @throws Failure `invalid_request` for a body that nests too deep; `service_unavailable` when it takes too long;
   *   errors of a tool, unless they are Failures
   */
  answer(request: McpRequest, tools: ToolSet, signal: AbortSignal): Promise<McpAnswer>
}

/** A client may cancel a request in the same message: then no answer ever comes. */
const REQUEST_TIMEOUT_MS = 30_000

/** The transport needs an absolute URL, and never connects to it. */
const URL_OF_REQUEST = 'http://gateway/mcp'
const BOTH_TYPES = 'application/json, text/event-stream'
const TAKES_JSON = /^$|\*\/\*|application\/(?:\*|json)/i

/** One for all: otherwise each server would create its own, though no server here asks its client anything. */
const validator = new AjvJsonSchemaValidator()
/** Tools change only with the release, and are the same for every key. */
const CACHE_HINT = { ttlMs: 300_000, cacheScope: 'public' } as const

const REQUESTS = new Map<string, StandardSchemaV1Sync>([
  ['initialize', specTypeSchemas.InitializeRequest],
  ['tools/list', specTypeSchemas.ListToolsRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
])

/** Names the wrong params of a request. */
function describeWrongParams(message: JSONRPCRequest): string | null {
  const { issues } = REQUESTS.get(message.method)?.['~standard'].validate(message) ?? {}
  if (issues === undefined) return null
  const problems = issues.map(({ path, message: problem }) => `${path?.join('.')}: ${problem}`)
  return `These params do not fit ${message.method}. ${problems.join('; ')}.`
}

/** Refuses wrong params in words, with -32602: the package has -32603 for most of them. */
class PlainServer extends Server {
  override async connect(transport: Transport): Promise<void> {
    await super.connect(transport)
    const serve = transport.onmessage!
    transport.onmessage = (message, extra) => {
      if (!isJSONRPCRequest(message)) return serve(message, extra)
      // Without a handshake its method does not exist, whatever its params are.
      const exists = message.method !== 'initialize' || extra?.classification === undefined
      const problem = exists ? describeWrongParams(message) : null
      if (problem === null) return serve(message, extra)
      const error = { code: ProtocolErrorCode.InvalidParams, message: problem }
      void transport.send({ jsonrpc: '2.0', id: message.id, error })
    }
  }
}

function makeServer(tools: ToolSet, version: string, onUnforeseen: (error: unknown) => void): Server {
  const server = new PlainServer(
    { name: 'tollgate', title: 'Tollgate knowledge', version },
    {
      capabilities: { tools: {} },
      instructions: MCP_INSTRUCTIONS,
      jsonSchemaValidator: validator,
      cacheHints: { 'server/discover': CACHE_HINT, 'tools/list': CACHE_HINT },
    },
  )
  server.setRequestHandler('tools/list', () => ({ tools: [...TOOLS] }))
  // One after the other: a batch never loads PostgreSQL more than one call does.
  let last: Promise<unknown> = Promise.resolve()
  server.setRequestHandler('tools/call', ({ params }) => {
    const result = last.then(() => callTool(tools, params.name, params.arguments))
    last = result.catch((error: unknown) => {
      if (!(error instanceof ProtocolError)) onUnforeseen(error)
    })
    return result
  })
  return server
}

/** Returns the JSON; undefined for another text, which the transport reports in the protocol's form. */
function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

/** Replaces characters that a header cannot have; a text with them is not JSON and is refused anyway. */
const replaceNonAscii = (value: string): string => value.replace(/[^ -~]/g, '?')

function toWebRequest(request: McpRequest, parsedBody: unknown): Request {
  const { accept, contentType, protocolVersion, method, name, body } = request
  const given = {
    // The answer is JSON always: who takes that need not take a stream as well.
    accept: TAKES_JSON.test(accept) ? BOTH_TYPES : accept,
    'content-type': contentType,
    'mcp-protocol-version': protocolVersion,
    'mcp-method': method,
    'mcp-name': name,
  }
  const headers = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map(([header, value]): [string, string] => [header, replaceNonAscii(value)])
  const text = parsedBody === undefined ? { body: body.toString('utf8') } : {}
  return new Request(URL_OF_REQUEST, { method: 'POST', headers, ...text })
}

/** The package would open a stream, on which nothing ever comes: tools do not change while a process runs. */
function refuseSubscription(id: RequestId): McpAnswer {
  const error = { code: ProtocolErrorCode.MethodNotFound, message: 'This server has no subscriptions.' }
  return {
    status: 404,
    contentType: 'application/json',
    body: JSON.stringify({ jsonrpc: '2.0', id, error }),
  }
}

type WebHandler = ReturnType<typeof createMcpHandler>['fetch']

async function connectLegacy(server: Server): Promise<WebHandler> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  return (request, options) => transport.handleRequest(request, options)
}

/** Answers by the revisions with a handshake, or by those in which each request names its revision. */
async function answerRequest(server: Server, request: McpRequest): Promise<McpAnswer> {
  const parsedBody = parseBody(request.body)
  const web = toWebRequest(request, parsedBody)
  if (isJSONRPCRequest(parsedBody) && parsedBody.method === 'subscriptions/listen')
    return refuseSubscription(parsedBody.id)
  const handle = (await isLegacyRequest(web, parsedBody))
    ? await connectLegacy(server)
    : createMcpHandler(() => server, { legacy: 'reject' }).fetch
  const response = await handle(web, { parsedBody })
  const { status, headers } = response
  return { status, contentType: headers.get('content-type') ?? '', body: await response.text() }
}

const tooDeep = (): Failure =>
  new Failure(
    'invalid_request',
    `The request body nests deeper than ${MAX_JSON_LEVELS} levels; send it with fewer.`,
  )

const tooLong = (): Failure =>
  new Failure('service_unavailable', 'The request was not answered in time. Try again in a minute.')

/** @throws Failure `service_unavailable` after the bound; the signal's reason */
async function withTimeout<T>(answer: Promise<T>, boundMs: number, signal: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  const clock = setTimeout(() => reject(tooLong()), boundMs)
  try {
    return await Promise.race([answer, ended])
  } finally {
    clearTimeout(clock)
    signal.removeEventListener('abort', onAbort)
  }
}

export const mcpServer = (version: string, boundMs = REQUEST_TIMEOUT_MS): McpServer => ({
  async answer(request, tools, signal) {
    if (isTooDeep(request.body.toString('utf8'))) throw tooDeep()
    const unforeseen: unknown[] = []
    const server = makeServer(tools, version, (error) => unforeseen.push(error))
    try {
      const answer = await withTimeout(answerRequest(server, request), boundMs, signal)
      if (unforeseen.length > 0) throw unforeseen[0]
      return answer
    } finally {
      await server.close()
    }
  },
})
