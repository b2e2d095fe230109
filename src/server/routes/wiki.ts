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
import type { Answered, RoutedPath } from './routed.ts'

export type WikiRouteDeps = McpDeps

const WIKI = '/api/v1/ext/wiki'

/** Returns the routes of the wiki. `free` checks the key alone. */
export function wikiRoutes(deps: WikiRouteDeps, free: Answered): readonly RoutedPath[] {
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
    ...Object.entries(reading).map(([path, answer]) => ({
      path: WIKI + path,
      methods: { GET: free(answer(deps)) },
    })),
    { path: '/mcp', methods: { POST: { ...free(mcp(deps)), maxBodyBytes: MCP_MAX_BODY_BYTES } } },
  ]
}
