/** `POST /mcp`: the knowledge bases as tools of a model. See docs/api-rules.md, "MCP". */
import { map, type Observable } from 'rxjs'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'
import type { McpAnswer, McpServer } from '../../src/mcp/server.ts'
import { fromAbortable } from '../replies/from-abortable.ts'
import type { Caller } from '../stages/authenticate.ts'
import { wikiTools } from './mcp-tools.ts'
import { readerOf, type WikiDeps } from './reading.ts'

export interface McpDeps extends WikiDeps {
  readonly openMcp: () => Promise<McpServer>
}

const BYTES_PER_MIB = 1024 * 1024
/** A message is a few words. */
export const MCP_MAX_BODY_BYTES = BYTES_PER_MIB

const requestOf = ({ header, body }: GatewayRequest) => ({
  accept: header('accept'),
  contentType: header('content-type'),
  protocolVersion: header('mcp-protocol-version'),
  body,
})

const replyOf = ({ status, contentType, body }: McpAnswer): Reply => ({
  type: 'full',
  status,
  headers: contentType === '' ? [] : [['content-type', contentType]],
  body,
})

/** The caller has authenticated the reader; reading is free, so no wallet is checked. */
export const mcp =
  (deps: McpDeps) =>
  ({ known, request }: Caller): Observable<Reply> =>
    fromAbortable(async (signal) => {
      const server = await deps.openMcp()
      return server.answer(requestOf(request), wikiTools(deps, readerOf(known)), signal)
    }).pipe(map(replyOf))
