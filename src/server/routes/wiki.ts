/** Routes of the knowledge bases: free, and counted by no limit. */
import { MCP_MAX_BODY_BYTES, type McpDeps, mcp } from '../../../pipelines/knowledge/mcp.ts'
import {
  listBacklinks,
  listBases,
  listByTag,
  listTags,
  type ReadWikiDeps,
  readPage,
  readPages,
  searchWiki,
  showSource,
} from '../../../pipelines/knowledge/wiki.ts'
import { type RoutedPath, routed } from './routed.ts'

export type WikiRouteDeps = McpDeps & ReadWikiDeps

const WIKI = '/api/v1/ext/wiki'

export const wikiRoutes = (deps: WikiRouteDeps): readonly RoutedPath[] => [
  routed(`${WIKI}/search`, { GET: searchWiki(deps) }),
  routed(`${WIKI}/kbs`, { GET: listBases(deps) }),
  routed(`${WIKI}/tags`, { GET: listTags(deps) }),
  routed(`${WIKI}/tags/{tag}`, { GET: listByTag(deps) }),
  routed(`${WIKI}/pages`, { GET: readPages(deps) }),
  routed(`${WIKI}/pages/{id}`, { GET: readPage(deps) }),
  routed(`${WIKI}/pages/{id}/backlinks`, { GET: listBacklinks(deps) }),
  routed(`${WIKI}/pages/{id}/source`, { GET: showSource(deps) }),
  routed('/mcp', { POST: mcp(deps) }, { maxBodyBytes: MCP_MAX_BODY_BYTES }),
]
