/**
 * The Model Context Protocol over Streamable HTTP, without sessions: one request is one server, answered with JSON. All
 * of the protocol's own package is in this folder. See docs/api-rules.md, "MCP".
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import { Failure } from '../../schemas/failure.ts'
import { MCP_INSTRUCTIONS } from '../../schemas/knowledge/mcp.ts'
import { isTooDeep } from '../core/json/exact.ts'
import { MAX_JSON_LEVELS } from '../core/json/scanner/tape.ts'
import { findRefusal, refuseWrongParams } from './messages.ts'
import { callTool, TOOLS, type ToolSet } from './tools.ts'

/** One HTTP request of a known caller. Header values are as they came, empty where there is none. */
export interface McpRequest {
  readonly accept: string
  readonly contentType: string
  readonly protocolVersion: string
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

function makeServer(tools: ToolSet, version: string, onUnforeseen: (error: unknown) => void): Server {
  const server = new Server(
    { name: 'tollgate', title: 'Tollgate knowledge', version },
    { capabilities: { tools: {} }, instructions: MCP_INSTRUCTIONS, jsonSchemaValidator: validator },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...TOOLS] }))
  // One after the other, so that a batch loads PostgreSQL no more than one call does.
  let last: Promise<unknown> = Promise.resolve()
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const result = last.then(() => callTool(tools, params.name, params.arguments))
    last = result.catch((error: unknown) => {
      if (!(error instanceof McpError)) onUnforeseen(error)
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

function toWebRequest(
  { accept, contentType, protocolVersion, body }: McpRequest,
  isParsed: boolean,
): Request {
  const headers = new Headers({
    // The answer is JSON always: who takes that need not take a stream as well.
    accept: TAKES_JSON.test(accept) ? BOTH_TYPES : replaceNonAscii(accept),
    'content-type': replaceNonAscii(contentType),
  })
  if (protocolVersion !== '') headers.set('mcp-protocol-version', replaceNonAscii(protocolVersion))
  return new Request(URL_OF_REQUEST, {
    method: 'POST',
    headers,
    ...(isParsed ? {} : { body: body.toString('utf8') }),
  })
}

async function answerRequest(
  transport: WebStandardStreamableHTTPServerTransport,
  request: McpRequest,
): Promise<McpAnswer> {
  const body = parseBody(request.body)
  const isParsed = body !== undefined
  const refusal = isParsed ? findRefusal(body) : null
  if (refusal !== null) return { status: 400, contentType: 'application/json', body: JSON.stringify(refusal) }
  const response = await transport.handleRequest(
    toWebRequest(request, isParsed),
    isParsed ? { parsedBody: body } : {},
  )
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
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    await server.connect(transport)
    refuseWrongParams(transport)
    try {
      const answer = await withTimeout(answerRequest(transport, request), boundMs, signal)
      if (unforeseen.length > 0) throw unforeseen[0]
      return answer
    } finally {
      await server.close()
    }
  },
})
