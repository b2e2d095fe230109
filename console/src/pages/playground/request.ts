/** Makes the request of the playground from its settings. */

/** A picture in a message, as a data URL. */
export interface Picture {
  readonly name: string
  readonly url: string
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON, as the model wrote it. */
  readonly arguments: string
}

interface AskedTurn {
  readonly role: 'user' | 'tool'
  readonly text: string
  readonly pictures?: readonly Picture[]
  /** The tool call that a turn of role `tool` answers. */
  readonly toolCallId?: string
}

export interface AnswerTurn {
  readonly role: 'assistant'
  readonly text: string
  readonly reasoning?: string
  readonly toolCalls?: readonly ToolCall[]
  readonly model?: string
  /** Finds the call in the log. */
  readonly requestId?: string | null
  readonly ending?: 'whole' | 'broken' | 'stopped'
  /** Why it broke off, as the provider says it. */
  readonly error?: string | null
  /** The answer of the model that this one is compared with. */
  readonly compared?: AnswerTurn
}

export type Turn = (AskedTurn | AnswerTurn) & {
  readonly pictures?: readonly Picture[]
  readonly toolCalls?: readonly ToolCall[]
}

export interface Settings {
  readonly model: string
  readonly system: string
  readonly stream: boolean
  readonly temperature: number | null
  readonly topP: number | null
  readonly maxTokens: number | null
  readonly reasoningEffort: 'low' | 'medium' | 'high' | null
  /** A list of tools as JSON, in the form of the chat-completions protocol; empty for none. */
  readonly tools: string
}

type ReadTools =
  | { readonly tools: readonly object[]; readonly problem: null }
  | { readonly tools: null; readonly problem: 'not_json' | 'not_a_list' | 'no_function_name' }

const isNamedFunction = (tool: unknown): tool is object =>
  typeof (tool as { function?: { name?: unknown } } | null)?.function?.name === 'string'

/** Parses the definitions of tools and reports errors in them. */
export function readTools(text: string): ReadTools {
  if (text.trim() === '') return { tools: [], problem: null }
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    return { tools: null, problem: 'not_json' }
  }
  if (!Array.isArray(read)) return { tools: null, problem: 'not_a_list' }
  return read.every(isNamedFunction)
    ? { tools: read, problem: null }
    : { tools: null, problem: 'no_function_name' }
}

function toMessage(turn: Turn): object {
  const { role, text, pictures = [], toolCalls = [] } = turn
  if (role === 'tool') return { role, tool_call_id: turn.toolCallId, content: text }
  const calls = toolCalls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  }))
  if (pictures.length === 0) return { role, content: text, ...(calls.length > 0 && { tool_calls: calls }) }
  const images = pictures.map(({ url }) => ({ type: 'image_url', image_url: { url } }))
  return { role, content: [{ type: 'text', text }, ...images] }
}

/** Returns the body of `POST /v1/chat/completions`. Tools that cannot be read are left out. */
export function makeBody(settings: Settings, turns: readonly Turn[]): object {
  const { model, system, stream, temperature, topP, maxTokens, reasoningEffort } = settings
  const { tools } = readTools(settings.tools)
  return {
    model,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...turns.map(toMessage)],
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
    ...(temperature !== null && { temperature }),
    ...(topP !== null && { top_p: topP }),
    ...(maxTokens !== null && { max_tokens: maxTokens }),
    ...(reasoningEffort !== null && { reasoning_effort: reasoningEffort }),
    ...(tools !== null && tools.length > 0 && { tools }),
  }
}
