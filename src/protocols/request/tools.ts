/**
 * The tools that requests may offer, by the type under which each protocol has them: the client's own, which the
 * client runs, and server tools, which the upstream runs. A server tool needs a model that is capable of it and a
 * channel that offers it, both under its name in `SERVER_TOOLS`; each call of one that the upstream reports costs
 * `server_tool_call`. A type that is in no table is refused: its effect and its price are unknown.
 */
import type { ChatProtocol, ServerTool } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { cutText } from '../../core/json/cut.ts'

/** Types of tools that the client runs. */
const CLIENT_TOOLS: Readonly<Record<ChatProtocol, RegExp>> = {
  'chat-completions': /^(function|custom)$/,
  messages: /^(custom|(bash|text_editor|computer|memory|computer_toolset|browser_toolset)_\d{8})$/,
  responses: /^(function|custom|local_shell|apply_patch|shell|namespace)$/,
  'generate-content': /^function_?declarations$/i,
}

/** By a plain type: lower case, words joined by underscores, without a date. The same in each protocol. */
const SERVER_TOOL_TYPES: Readonly<Record<string, ServerTool>> = {
  web_search: 'web_search',
  web_search_preview: 'web_search',
  google_search: 'web_search',
  google_search_retrieval: 'web_search',
  enterprise_web_search: 'web_search',
  live_search: 'web_search',
  x_search: 'web_search',
  browser_search: 'web_search',
  image_generation: 'image_generation',
  code_interpreter: 'code_interpreter',
  code_execution: 'code_interpreter',
  computer: 'computer_use',
  computer_use: 'computer_use',
  computer_use_preview: 'computer_use',
  file_search: 'file_search',
  retrieval: 'file_search',
  google_maps: 'maps',
  mcp: 'mcp',
  mcp_servers: 'mcp',
  mcp_toolset: 'mcp',
  tool_search: 'tool_search',
  tool_search_tool_bm25: 'tool_search',
  tool_search_tool_regex: 'tool_search',
  url_context: 'url_context',
  web_fetch: 'url_context',
}

/** A model that another one asks, such as `advisor_20260301`. Without a price, no upstream gets it. */
export const ADVISOR = /^advisor_\d{8}$/

const LOWER_THEN_UPPER = /(?<=[a-z])(?=[A-Z])/g
/** Such as the end of `web_search_20250305` or `web_search_preview_2025_03_11`. */
const DATE = /_(\d{8}|\d{4}_\d\d_\d\d)$/
const SHOWN_TYPE_MAX_CHARS = 60

const plainType = (type: string): string =>
  type.replace(LOWER_THEN_UPPER, '_').toLowerCase().replaceAll('-', '_').replace(DATE, '')

/** Returns the server tool of that type, in any spelling; undefined for any other. */
export function findServerTool(type: string): ServerTool | undefined {
  const plain = plainType(type)
  return Object.hasOwn(SERVER_TOOL_TYPES, plain) ? SERVER_TOOL_TYPES[plain] : undefined
}

/** Returns whether the value is a number of calls, as a client may limit them. */
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

/**
 * Returns the server tools among tools of these types, each once.
 * @throws Failure `tool_not_supported` for an unknown type
 */
export function listServerTools(protocol: ChatProtocol, types: Iterable<string>): readonly ServerTool[] {
  const found = new Set<ServerTool>()
  for (const type of types) {
    if (CLIENT_TOOLS[protocol].test(type)) continue
    const tool = findServerTool(type)
    if (tool === undefined)
      throw new Failure(
        'tool_not_supported',
        `The tool type '${cutText(type, SHOWN_TYPE_MAX_CHARS)}' is not known; declare it as a function.`,
      )
    found.add(tool)
  }
  return [...found]
}
