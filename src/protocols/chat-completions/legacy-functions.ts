/**
 * Functions, the predecessors of tools in the chat-completions protocol: `functions`, `function_call` and messages of
 * the role `function`. Translations use only tools; the answer to such a request is converted back to functions.
 */
import type {
  CalledTool,
  ConversationMessage,
  OfferedTool,
  RequestMessage,
  ToolChoice,
  TranslatableChatRequest,
} from '../../../schemas/chat/chat-completions-conversation.ts'
import { toFields } from '../loose.ts'
import { invalidField } from '../request/client-json.ts'
import { findServerTool } from '../request/tools.ts'

const WEB_SEARCH = 'web_search'

/** The tools of a request, and the conversation in which they are called. */
export interface ToolConversation {
  readonly messages: readonly ConversationMessage[]
  readonly tools: readonly OfferedTool[]
  readonly choice: ToolChoice | null
  /** False: at most one call in an answer. */
  readonly isParallel: boolean
}

/**
 * Rewrites legacy functions as tools.
 * @throws Failure `invalid_request` for a `function` message that answers no call
 */
export function withTools(request: TranslatableChatRequest): ToolConversation {
  const { tools, functions, tool_choice: choice, function_call: legacyChoice } = request
  const offered = (functions ?? []).map((offer) => ({ type: 'function', function: offer }))
  return {
    messages: toConversation(request.messages),
    tools: [...searchesByOneName(tools ?? [], request.web_search_options), ...offered],
    choice: choice ?? toToolChoice(legacyChoice),
    // An answer in legacy terms has room for one call.
    isParallel: request.parallel_tool_calls !== false && !isLegacy(functions, tools),
  }
}

/** Renames search tools to the name that translations use; adds one for options in place of a tool. */
function searchesByOneName(tools: readonly OfferedTool[], options: unknown): readonly OfferedTool[] {
  const named = tools.map((tool) =>
    findServerTool(tool.type) === WEB_SEARCH && !tool.type.startsWith(WEB_SEARCH)
      ? { ...tool, type: WEB_SEARCH }
      : tool,
  )
  if (options == null || named.some(({ type }) => type.startsWith(WEB_SEARCH))) return named
  return [...named, { ...toFields(options), type: WEB_SEARCH }]
}

function toToolChoice(choice: TranslatableChatRequest['function_call']): ToolChoice | null {
  if (choice == null || typeof choice === 'string') return choice ?? null
  return { type: 'function', function: { name: choice.name } }
}

function toConversation(messages: readonly RequestMessage[]): readonly ConversationMessage[] {
  /** The ids of calls without an answer yet, by the function's name. */
  const open = new Map<string, string>()
  return messages.map((message, index) => {
    if (message.role === 'function') {
      const id = open.get(message.name)
      if (id === undefined)
        throw invalidField(`messages[${index}].name`, 'no function_call before it has this name')
      open.delete(message.name)
      return { role: 'tool', tool_call_id: id, content: message.content ?? '' }
    }
    if (message.role !== 'assistant' || message.function_call == null || message.tool_calls?.length)
      return message
    const id = `function_call_${index}`
    open.set(message.function_call.name, id)
    const call: CalledTool = { id, type: 'function', function: message.function_call }
    return { ...message, tool_calls: [call] }
  })
}

/** Returns true for functions without tools: a client that offers tools as well reads calls of tools. */
export const isLegacy = (functions: unknown, tools: unknown): boolean => isOffer(functions) && !isOffer(tools)

const isOffer = (list: unknown): boolean => Array.isArray(list) && list.length > 0
