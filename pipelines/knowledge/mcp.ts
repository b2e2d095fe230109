/** `POST /mcp`: the knowledge bases as tools of a model. See docs/api-rules.md, "MCP". */
import { Failure } from '../../schemas/failure.ts'
import type { GatewayRequest, Handler, Reply } from '../../src/http/handler.ts'
import type { McpAnswer, McpServer } from '../../src/mcp/server.ts'
import { type AuthenticatedCall, authenticate, type KeyAccess } from '../calls/authenticate.ts'
import { answerOnce, type Call, calls, type Found, find, type Stage } from '../calls/pipeline.ts'
import { wikiTools } from './mcp-tools.ts'
import { toReader, type WikiDeps } from './reading.ts'

export interface McpDeps extends WikiDeps {
  readonly openMcp: () => Promise<McpServer>
  /** Returns the origins of web pages that may call. */
  readonly allowedOrigins: () => readonly string[]
}

const BYTES_PER_MIB = 1024 * 1024
/** A message is a few words. */
export const MCP_MAX_BODY_BYTES = BYTES_PER_MIB

const toMcpRequest = ({ header, body }: GatewayRequest) => ({
  accept: header('accept'),
  contentType: header('content-type'),
  protocolVersion: header('mcp-protocol-version'),
  method: header('mcp-method'),
  name: header('mcp-name'),
  body,
})

const toReply = ({ found: { status, contentType, body } }: Call & Found<McpAnswer>): Reply => ({
  type: 'full',
  status,
  headers: contentType === '' ? [] : [['content-type', contentType]],
  body,
})

/** Answers the request. Reading is free: no wallet is checked and no limit applies. */
export const mcp = (access: KeyAccess, deps: McpDeps): Handler =>
  calls(authenticate(access))
    .then(checkOrigin(deps))
    .then(askServer(deps))
    .then(answerOnce(toReply))
    .toHandler()

/**
 * Refuses requests of other web pages, as the MCP transport requires: by DNS rebinding a page could call a server that
 * only this machine reaches. Other clients send no Origin.
 * @throws Failure `permission_denied`
 */
const checkOrigin =
  ({ allowedOrigins }: McpDeps): Stage<AuthenticatedCall, AuthenticatedCall> =>
  (call: AuthenticatedCall) => {
    const origin = call.request.header('origin')
    if (origin === '' || allowedOrigins().includes(origin)) return call
    throw new Failure(
      'permission_denied',
      'The request comes from a page of an origin that may not call /mcp. An operator can name it in mcp.allowed_origins.',
    )
  }

/** Adds the MCP server's answer, with the tools over the bases that the key may read. */
const askServer = (deps: McpDeps): Stage<AuthenticatedCall, Call & Found<McpAnswer>> =>
  find(async ({ known, request }, signal) => {
    const server = await deps.openMcp()
    return server.answer(toMcpRequest(request), wikiTools(deps, toReader(known)), signal)
  })
