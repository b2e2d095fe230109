/** The MCP server without a network: messages in, answers out, and tools that the test makes. */

import { type McpAnswer, type McpRequest, mcpServer } from '../../../src/mcp/server.ts'
import type { ToolSet } from '../../../src/mcp/tools.ts'

export const PAGE = {
  id: 'page_1',
  kb_id: 'default',
  title: 'Tides',
  summary: 'Why the sea rises',
  body: 'The moon pulls.',
  tags: ['sea'],
  aliases: [],
  links: [],
  confidence: 'high',
  needs_review: false,
  source: null,
  outgoing_links: [],
  body_truncated: false,
}

const NONE = { returned: 0, has_more: false, pages: [] }

/** Each finds what there is to find: one page. */
export const tools = (own: Partial<ToolSet> = {}): ToolSet => ({
  search_wiki: async ({ q, offset }) => ({
    query: q,
    total_hits: 0,
    offset,
    returned: 0,
    has_more: false,
    results: [],
  }),
  read_page: async () => PAGE,
  read_pages: async ({ ids }) => ({ pages: [PAGE], missing: ids }),
  list_by_tag: async ({ tag }) => ({ tag, ...NONE }),
  backlinks: async ({ id }) => ({ id, ...NONE }),
  get_source: async () => ({
    r2_key: 'sources/a',
    filename: 'a.pdf',
    locator: null,
    url: 'https://files.test/a',
    url_ttl_secs: 3600,
  }),
  ...own,
})

export interface RpcAnswer {
  readonly jsonrpc: '2.0'
  readonly id: string | number | null
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export interface Spoken extends McpAnswer {
  readonly json: RpcAnswer
}

const JSON_BOTH = {
  accept: 'application/json, text/event-stream',
  contentType: 'application/json',
  protocolVersion: '',
  method: '',
  name: '',
}

export interface Speaking extends Partial<Omit<McpRequest, 'body'>> {
  readonly tools?: ToolSet
  readonly signal?: AbortSignal
  readonly boundMs?: number
}

/** `message` is sent as JSON; a text as it is. */
export async function speak(message: unknown, how: Speaking = {}): Promise<Spoken> {
  const { tools: set = tools(), signal = new AbortController().signal, boundMs, ...headers } = how
  const text = typeof message === 'string' ? message : JSON.stringify(message)
  const request = { ...JSON_BOTH, ...headers, body: Buffer.from(text) }
  const answer = await mcpServer('1.2.3', boundMs).answer(request, set, signal)
  return { ...answer, json: answer.body === '' ? null : JSON.parse(answer.body) }
}

/** The newest revision: no handshake, and each request names its revision and its client, in part in headers too. */
export const NEWEST = '2026-07-28'

/** As a client of the newest revision sends it. */
export function speakNewest(
  method: string,
  params: Record<string, unknown> = {},
  { version = NEWEST, ...how }: Speaking & { readonly version?: string } = {},
): Promise<Spoken> {
  const name = method === 'tools/call' ? String(params.name) : ''
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
  return speak(message, { protocolVersion: version, method, name, ...how })
}

export const call = (name: string, args?: unknown, id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, ...(args === undefined ? {} : { arguments: args }) },
})
