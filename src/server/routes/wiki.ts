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
import type { RoutedPath } from './routed.ts'

export type WikiRouteDeps = McpDeps & ReadWikiDeps

const WIKI = '/api/v1/ext/wiki'

/** Returns the routes of the wiki. */
export function wikiRoutes(deps: WikiRouteDeps): readonly RoutedPath[] {
  const reading = {
    '/search': searchWiki,
    '/kbs': listBases,
    '/tags': listTags,
    '/tags/{tag}': listByTag,
    '/pages': readPages,
    '/pages/{id}': readPage,
    '/pages/{id}/backlinks': listBacklinks,
    '/pages/{id}/source': showSource,
  }
  return [
    ...Object.entries(reading).map(([path, read]) => ({
      path: WIKI + path,
      methods: { GET: { handler: read(deps) } },
    })),
    { path: '/mcp', methods: { POST: { handler: mcp(deps), maxBodyBytes: MCP_MAX_BODY_BYTES } } },
  ]
}
