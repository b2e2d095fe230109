/** Counts the calls of tools that the upstream ran: by the items of an answer, or as its provider reports them. */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { findProvider } from '../../channels/providers/presets.ts'
import type { ToolRules } from '../../channels/providers/provider.ts'
import { keepExtra, type TokenUsage } from '../../core/pricing/usage.ts'
import { type LooseObject, toFields, toText } from '../loose.ts'
import { findServerTool } from '../request/tools.ts'
import { readToolCalls, type ToolCalls } from '../usage/server-tools.ts'

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

/** Returns the type of the call that an item is; null for any other item. */
function callType(item: ItemFacts, rules: ToolRules | undefined): string | null {
  const { type, action } = item
  // It also opens pages that it has found, and searches in them: that costs nothing.
  if (type === 'web_search_call' && action !== '' && action !== 'search') return null
  return rules?.callType(item) ?? (SERVER_TOOL_ITEMS.has(type) ? type : null)
}

/** Returns the facts of an item of a whole answer. */
export const itemFacts = ({ type, name, action }: LooseObject): ItemFacts => ({
  type: toText(type),
  name: toText(name),
  action: toText(toFields(action).type),
})

export class ServerToolItems {
  readonly #rules: ToolRules | undefined
  #items = 0
  readonly #tools: Partial<Record<ServerTool, number>> = {}
  /** The upstream's own counts; null where it has none. */
  #reported: ToolCalls | null = null

  constructor(provider?: string) {
    this.#rules = findProvider(provider)?.tools
  }

  get calls(): number {
    return this.#reported?.calls ?? this.#items
  }

  /** Adds an item that has ended. */
  add(item: ItemFacts): void {
    const type = callType(item, this.#rules)
    if (type === null) return
    this.#items++
    const name = type.replace(ITEM_ENDING, '')
    const tool = findServerTool(name) ?? TOOLS_OF_ITEMS[name]
    if (tool !== undefined) this.#tools[tool] = (this.#tools[tool] ?? 0) + 1
  }

  /** Reads the usage of an answer: some providers count calls in it, and not all of them are items. */
  report(usage: unknown): void {
    const counts = this.#rules?.reportedCalls(toFields(usage)) ?? null
    if (counts !== null) this.#reported = readToolCalls(counts)
  }

  /** Adds the calls to counts of tokens. */
  addTo<Counts extends Omit<TokenUsage, 'prompt' | 'output'>>(counts: Counts): Counts {
    if (this.calls === 0) return { ...counts, serverToolCalls: 0 }
    const { tools } = this.#reported ?? { tools: this.#tools }
    return { ...counts, serverToolCalls: this.calls, ...keepExtra({ ...counts.extra, tools }) }
  }
}
