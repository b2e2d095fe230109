/** Counts the calls of tools that the upstream ran, as reports have them: a count for each tool. */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'
import type { LooseObject } from '../loose.ts'
import { findServerTool } from '../request/tools.ts'

/** `web_search_requests`, `web_search_calls`, `SERVER_SIDE_TOOL_WEB_SEARCH`. */
const AROUND_NAME = /^server_side_tool_|_(requests|calls)$/gi

export interface ToolCalls {
  readonly calls: number
  /** The calls of known tools among them. */
  readonly tools: Partial<Record<ServerTool, number>>
}

const NO_CALLS: ToolCalls = { calls: 0, tools: {} }

export function readToolCalls(counts: LooseObject): ToolCalls {
  let calls = 0
  let tools: ToolCalls['tools'] | null = null
  for (const name in counts) {
    const count = counts[name]
    if (typeof count !== 'number' || !(count >= 1) || count > MAX_REPORTED_TOKENS) continue
    calls += Math.floor(count)
    const tool = findServerTool(name.replace(AROUND_NAME, ''))
    if (tool === undefined) continue
    tools ??= {}
    tools[tool] = (tools[tool] ?? 0) + Math.floor(count)
  }
  return calls === 0 ? NO_CALLS : { calls, tools: tools ?? {} }
}
