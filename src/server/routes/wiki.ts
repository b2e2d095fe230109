/** Routes of the knowledge bases: free, and counted by no limit. */
import { MCP_MAX_BODY_BYTES, type McpDeps, mcp } from '../../../pipelines/knowledge/mcp.ts'
import {
  listBacklinks,
  listBases,
  listByTag,
  listTags,
  readPage,
  readPages,
  searchWiki,
  showSource,
} from '../../../pipelines/knowledge/wiki.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type RoutedPath, routed } from './routed.ts'

const WIKI = '/api/v1/ext/wiki'

export const wikiRoutes = (access: CallGroups['access'], deps: McpDeps): readonly RoutedPath[] => [
  routed(`${WIKI}/search`, { GET: searchWiki(access, deps) }),
  routed(`${WIKI}/kbs`, { GET: listBases(access, deps) }),
  routed(`${WIKI}/tags`, { GET: listTags(access, deps) }),
  routed(`${WIKI}/tags/{tag}`, { GET: listByTag(access, deps) }),
  routed(`${WIKI}/pages`, { GET: readPages(access, deps) }),
  routed(`${WIKI}/pages/{id}`, { GET: readPage(access, deps) }),
  routed(`${WIKI}/pages/{id}/backlinks`, { GET: listBacklinks(access, deps) }),
  routed(`${WIKI}/pages/{id}/source`, { GET: showSource(access, deps) }),
  routed('/mcp', { POST: mcp(access, deps) }, { maxBodyBytes: MCP_MAX_BODY_BYTES }),
]
