/** Counts the calls of tools that the upstream ran: by the items of an answer, or as xAI reports them. */
import type { Provider, ServerTool } from '../../../schemas/config/catalog.ts'
import { extraOf, type TokenUsage } from '../../core/pricing/usage.ts'
import { fieldsOf, isObject, type LooseObject, textOf } from '../loose.ts'
import { serverToolOf } from '../request/tools.ts'
import { callsOnly, type ToolCalls, toolCallsIn } from '../usage/server-tools.ts'

/** The facts of an item that tell what it costs; each empty where it has none. */
export interface ItemFacts {
  readonly type: string
  readonly name: string
  /** The type of its action. */
  readonly action: string
}

/** Items each of which is one call of a tool that the upstream ran. */
const SERVER_TOOL_ITEMS: ReadonlySet<string> = new Set([
  'web_search_call',
  'x_search_call',
  'image_generation_call',
  'file_search_call',
  'code_interpreter_call',
  'mcp_call',
  // A shell that the client runs has its output in the next request instead.
  'shell_call_output',
])
const ITEM_ENDING = /_call(_output)?$/
/** The name of one item is no tool's. */
const TOOLS_OF_ITEMS: Readonly<Record<string, ServerTool>> = { shell: 'code_interpreter' }
const X_SEARCH = 'x_search_call'

/** Returns the type of the call that an item is; null for any other item. */
function callType({ type, name, action }: ItemFacts, provider: Provider | undefined): string | null {
  // It also opens pages that it has found, and searches in them: that costs nothing.
  if (type === 'web_search_call' && action !== '' && action !== 'search') return null
  if (type === 'custom_tool_call' && provider === 'xai' && name.startsWith('x_')) return X_SEARCH
  return SERVER_TOOL_ITEMS.has(type) ? type : null
}

/** Returns the facts of an item of a whole answer. */
export const itemFacts = ({ type, name, action }: LooseObject): ItemFacts => ({
  type: textOf(type),
  name: textOf(name),
  action: textOf(fieldsOf(action).type),
})

export class ServerToolItems {
  readonly #provider: Provider | undefined
  #items = 0
  readonly #tools: Partial<Record<ServerTool, number>> = {}
  /** The upstream's own counts; null where it has none. */
  #reported: ToolCalls | null = null

  constructor(provider?: Provider) {
    this.#provider = provider
  }

  get calls(): number {
    return this.#reported?.calls ?? this.#items
  }

  /** Adds an item that has ended. */
  add(item: ItemFacts): void {
    const type = callType(item, this.#provider)
    if (type === null) return
    this.#items++
    const name = type.replace(ITEM_ENDING, '')
    const tool = serverToolOf(name) ?? TOOLS_OF_ITEMS[name]
    if (tool !== undefined) this.#tools[tool] = (this.#tools[tool] ?? 0) + 1
  }

  /** Reads the usage of an answer: xAI counts calls in it, and not all of them are items. */
  report(usage: unknown): void {
    const { server_side_tool_usage_details: details } = fieldsOf(usage)
    if (this.#provider === 'xai' && isObject(details)) this.#reported = toolCallsIn(callsOnly(details))
  }

  /** Adds the calls to counts of tokens. */
  addTo<Counts extends Omit<TokenUsage, 'prompt' | 'output'>>(counts: Counts): Counts {
    if (this.calls === 0) return { ...counts, serverToolCalls: 0 }
    const { tools } = this.#reported ?? { tools: this.#tools }
    return { ...counts, serverToolCalls: this.calls, ...extraOf({ ...counts.extra, tools }) }
  }
}
