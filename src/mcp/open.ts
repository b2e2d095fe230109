/** Loads the MCP server at its first request: its package takes longer than the rest of the first call. */
import type { McpServer } from './server.ts'

export function openMcp(version: string): () => Promise<McpServer> {
  let opened: Promise<McpServer> | null = null
  return () => {
    opened ??= import('./server.ts').then(({ mcpServer }) => mcpServer(version))
    return opened
  }
}
