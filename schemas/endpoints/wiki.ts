/** Answers of knowledge bases. See docs/api-rules.md, "Knowledge search" and "MCP". */
import { z } from 'zod'
import {
  cutPageList,
  kbList,
  ofBaseQuery,
  pagesQuery,
  searchPage,
  searchQuery,
  sourceLink,
  tagList,
  wikiEntryList,
  wikiPagePath,
  wikiTagPath,
} from '../knowledge/query.ts'
import { SOURCE_LINK_TTL_SECS, wikiPage } from '../knowledge/wiki.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'

const HTTP_ACCEPTED = 202
const HTTP_BAD_REQUEST = 400
const HTTP_NOT_FOUND = 404
const HTTP_NOT_ACCEPTABLE = 406
const HTTP_UNSUPPORTED_MEDIA_TYPE = 415

/** Free, at a zero balance too; never counted by a rate limit; never in the call log. */
const reading = {
  key: 'anywhere',
  tag: 'Knowledge',
  failures: ['permission_denied', 'not_found'],
} as const
const ofBase = { ...reading, query: ofBaseQuery } as const

const jsonRpc = z.looseObject({ jsonrpc: z.literal('2.0') })
const jsonRpcId = z.union([z.string(), z.int()])
const jsonRpcMessage = z.union([
  jsonRpc.extend({
    id: jsonRpcId.optional(),
    method: z.string(),
    params: z.looseObject({}).optional(),
  }),
  jsonRpc.extend({ id: jsonRpcId, result: z.looseObject({}) }),
  jsonRpc.extend({ id: jsonRpcId, error: z.looseObject({ code: z.int(), message: z.string() }) }),
])

const jsonRpcError = z.object({
  jsonrpc: z.literal('2.0'),
  error: z.looseObject({ code: z.int(), message: z.string() }),
  id: z.union([z.string(), z.number()]).nullable(),
})

export const wikiEndpoints: readonly RouteDescription[] = [
  {
    ...reading,
    name: 'searchWiki',
    summary: 'Search the pages of a base.',
    details:
      'Free, as all of this family: at a zero balance too, not counted by a rate limit, not in the call log. Title, ' +
      'aliases, tags, summary and body are searched, in languages with and without spaces between words.',
    query: searchQuery,
    answers: [jsonAnswer('WikiSearch', searchPage)],
    failures: [...reading.failures, 'invalid_request'],
  },
  {
    ...reading,
    name: 'listWikiBases',
    summary: 'List the bases that the key may read.',
    details: "The account's own is the first.",
    answers: [jsonAnswer('KnowledgeBaseList', kbList)],
    failures: ['permission_denied'],
  },
  {
    ...ofBase,
    name: 'listWikiTags',
    summary: 'List the tags of a base.',
    answers: [jsonAnswer('WikiTagList', tagList)],
  },
  {
    ...ofBase,
    name: 'listWikiPagesByTag',
    summary: 'List the pages under a tag.',
    details: 'None for a tag that no page has.',
    pathParameters: wikiTagPath,
    answers: [jsonAnswer('WikiEntryList', wikiEntryList)],
    failures: [...reading.failures, 'invalid_request'],
  },
  {
    ...reading,
    name: 'readWikiPages',
    summary: 'Read several pages, each as far as a first look needs.',
    query: pagesQuery,
    answers: [jsonAnswer('WikiPageList', cutPageList)],
    failures: [...reading.failures, 'invalid_request'],
  },
  {
    ...ofBase,
    name: 'readWikiPage',
    summary: 'Read a page in full.',
    pathParameters: wikiPagePath,
    answers: [jsonAnswer('WikiPage', wikiPage)],
  },
  {
    ...ofBase,
    name: 'listWikiBacklinks',
    summary: 'List the pages that link to a page.',
    pathParameters: wikiPagePath,
    answers: [jsonAnswer('WikiEntryList', wikiEntryList)],
  },
  {
    ...ofBase,
    name: 'showWikiSource',
    summary: 'Get the file that a page was made from.',
    details: `The link opens for ${SOURCE_LINK_TTL_SECS} seconds. 404 also for a page that has no source.`,
    pathParameters: wikiPagePath,
    answers: [jsonAnswer('WikiSource', sourceLink)],
  },
  {
    key: 'anywhere',
    tag: 'Knowledge',
    name: 'callMcp',
    summary: 'Speak the Model Context Protocol.',
    details:
      'Streamable HTTP, stateless, answered with JSON. Six tools that read every base that the key may read: ' +
      '`search_wiki`, `read_page`, `read_pages`, `list_by_tag`, `backlinks`, `get_source`. Free, as the knowledge ' +
      'endpoints are. A message that is refused by the protocol has its error in the form of JSON-RPC.',
    headers: z.object({
      accept: z.string().optional().describe('`application/json, text/event-stream`, as the protocol says.'),
      'mcp-protocol-version': z
        .string()
        .optional()
        .describe('As it was agreed on; since 2026-07-28 as in `params._meta`.'),
      'mcp-method': z.string().optional().describe('Since 2026-07-28: the `method` of the body.'),
      'mcp-name': z.string().optional().describe('Since 2026-07-28: the `params.name` of the body.'),
    }),
    body: { name: 'JsonRpcMessage', schema: jsonRpcMessage },
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    answers: [
      jsonAnswer('JsonRpcMessage', jsonRpcMessage),
      { status: HTTP_ACCEPTED, says: 'The message wants no answer.' },
      ...[HTTP_BAD_REQUEST, HTTP_NOT_FOUND, HTTP_NOT_ACCEPTABLE, HTTP_UNSUPPORTED_MEDIA_TYPE].map((status) =>
        jsonAnswer('JsonRpcError', jsonRpcError, status),
      ),
    ],
    failures: ['invalid_request', 'permission_denied', 'request_too_large'],
  },
]
