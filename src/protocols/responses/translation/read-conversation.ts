/**
 * Reads a request of the responses protocol into the canonical conversation. What that cannot hold is named. See
 * docs/translation.md, "The request".
 */
import type {
  Conversation,
  ConversationSettings,
  ConversationTurn,
  FileSource,
  GivenFile,
  OfferedTool,
  ReasoningDepth,
  SaidText,
  Seal,
  ToolCall,
  ToolChoice,
  ToolResult,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { Failure } from '../../../../schemas/failure.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import { readFileData } from '../../translate/data-uri.ts'
import { type DroppedFields, nameOthers } from '../../translate/dropped-fields.ts'
import { isLink, readLink } from '../../translate/linked-files.ts'
import { readSeal } from '../../translate/seal.ts'
import { readNumber, readSchemaFormat, readText } from '../../translate/settings.ts'

/** Fields that the conversation holds, and those that the gateway obeys or that mean nothing without the vendor. */
const HELD: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'stream', 'stream_options', 'max_output_tokens', 'reasoning'],
  ...['temperature', 'top_p', 'tools', 'tool_choice', 'parallel_tool_calls', 'text', 'user'],
  ...['safety_identifier', 'metadata', 'prompt_cache_key', 'service_tier', 'store', 'include'],
  ...['client_metadata', 'truncation', 'callback_url', 'top_logprobs', 'presence_penalty'],
  ...['frequency_penalty', 'background'],
])
/** What a client asks for to continue without a stored response: the proof of reasoning comes with every answer. */
const ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/**
 * @param request the client's request, parsed and valid
 * @throws Failure `invalid_request` with a message that names the field
 */
export function readResponsesConversation(request: LooseObject, dropped: DroppedFields): Conversation {
  refuseStored(request)
  nameOthers(request, HELD, dropped)
  // No response is kept, and no item is left out: the defaults ask for the same.
  if (request.store === true) dropped.add('store')
  if (request.truncation === 'auto') dropped.add('truncation')
  for (const included of toList(request.include))
    if (included !== ENCRYPTED_REASONING) dropped.add(toText(included))
  const instructions = readTexts(request.instructions)
  const turns: ConversationTurn[] = []
  const reader = new ItemReader(instructions, dropped)
  if (typeof request.input === 'string')
    turns.push({ role: 'user', parts: [{ type: 'text', text: request.input }] })
  else
    for (const [index, item] of toList(request.input).map(toFields).entries())
      turns.push(...reader.turns(item, `input[${index}]`))
  const tools = [...toList(request.tools), ...reader.tools]
  return {
    instructions,
    turns,
    tools: readOfferedTools(tools),
    toolChoice: readChoice(request.tool_choice, dropped),
    isParallel: request.parallel_tool_calls !== false,
    settings: readSettings(request, dropped),
  }
}

/** Another upstream keeps no response of this protocol. */
function refuseStored(request: LooseObject): void {
  for (const field of ['previous_response_id', 'conversation', 'background'])
    if (request[field] != null && request[field] !== false)
      throw invalidField(
        field,
        'this model keeps no responses; send the whole conversation, with `store: false`',
      )
}

const readTexts = (text: unknown): SaidText[] =>
  typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []

class ItemReader {
  /** Tools that items offer. */
  readonly tools: unknown[] = []
  readonly #instructions: SaidText[]
  readonly #dropped: DroppedFields

  constructor(instructions: SaidText[], dropped: DroppedFields) {
    this.#instructions = instructions
    this.#dropped = dropped
  }

  turns(item: LooseObject, path: string): ConversationTurn[] {
    switch (item.type ?? 'message') {
      case 'message':
        return this.#message(item, path)
      case 'reasoning':
        return readReasoningItem(item)
      case 'function_call':
      case 'custom_tool_call':
        return [{ role: 'assistant', parts: [readCall(item, path)] }]
      case 'function_call_output':
      case 'custom_tool_call_output':
        return [{ role: 'user', parts: [readResult(item, path)] }]
      case 'additional_tools':
      case 'tool_search_output':
        this.tools.push(...toList(item.tools))
        return []
      case 'item_reference':
        throw new Failure(
          'invalid_request',
          `Field '${path}' refers to an item that no upstream of this model stores. Send the item itself: set 'store: false'.`,
        )
      default:
        // Calls of tools that the vendor ran or that belong to it: no other upstream can read them.
        this.#dropped.add(toText(item.type))
        return []
    }
  }

  #message(item: LooseObject, path: string): ConversationTurn[] {
    const { role, content } = item
    const parts: TurnPart[] =
      typeof content === 'string'
        ? [{ type: 'text', text: content }]
        : toList(content).map((part, index) => readPart(toFields(part), `${path}.content[${index}]`))
    if (role === 'assistant') return [{ role: 'assistant', parts }]
    if (role === 'user') return [{ role: 'user', parts }]
    this.#instructions.push(...parts.filter((part) => part.type === 'text'))
    return []
  }
}

function readPart(
  part: LooseObject,
  path: string,
): SaidText | GivenFile | Extract<TurnPart, { type: 'refusal' }> {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: toText(part.text) }
    case 'refusal':
      return { type: 'refusal', text: toText(part.refusal) }
    case 'input_image': {
      const { detail } = part
      const isDetailed = typeof detail === 'string' && detail !== 'auto'
      return {
        type: 'image',
        source: readSource(toText(part.image_url), null, `${path}.image_url`),
        ...(isDetailed && { detail: { field: 'input_image.detail', value: detail } }),
        path: `${path}.image_url`,
      }
    }
    case 'input_file': {
      const isLinked = toText(part.file_url) !== ''
      const at = `${path}.${isLinked ? 'file_url' : 'file_data'}`
      const filename = toText(part.filename)
      return {
        type: 'file',
        source: readSource(toText(isLinked ? part.file_url : part.file_data), filename, at),
        ...(filename !== '' && { filename }),
        path: at,
      }
    }
    case 'input_audio': {
      const { data, format } = toFields(part.input_audio)
      const source = readSource(toText(data), `audio.${toText(format)}`, `${path}.input_audio.data`)
      return { type: 'audio', source, path }
    }
    default:
      throw invalidField(`${path}.type`, 'such a part cannot be translated for this model')
  }
}

function readSource(given: string, filename: string | null, path: string): FileSource {
  if (isLink(given)) return { type: 'link', url: readLink(given, path) }
  const file = readFileData(given, filename)
  if (file === null) throw invalidField(path, 'it must be an http(s) link or a base64 data URI')
  return { type: 'inline', ...file }
}

function readReasoningItem(item: LooseObject): ConversationTurn[] {
  const said = [...toList(item.summary), ...toList(item.content)].map((part) => toText(toFields(part).text))
  const given = readSeal(toText(item.encrypted_content), 'responses')
  const text = said.join('\n\n')
  if (text === '' && given === null) return []
  const id = toText(item.id)
  const seal: Seal | null = given
  return [{ role: 'assistant', parts: [{ type: 'reasoning', text, seal, ...(id !== '' && { id }) }] }]
}

function readCall(item: LooseObject, path: string): ToolCall {
  const isCustom = item.type === 'custom_tool_call'
  const namespace = toText(item.namespace)
  return {
    type: 'tool_call',
    id: toText(item.call_id) || toText(item.id),
    name: toText(item.name),
    ...(namespace !== '' && { namespace }),
    kind: isCustom ? 'custom' : 'function',
    input: toText(isCustom ? item.input : item.arguments),
    seal: null,
    path: `${path}.arguments`,
  }
}

function readResult(item: LooseObject, path: string): ToolResult {
  const { output } = item
  const isPlain = !Array.isArray(output)
  const text = typeof output === 'string' ? output : JSON.stringify(output ?? '')
  const parts = isPlain
    ? [{ type: 'text' as const, text }]
    : output.map((part, index) => readPart(toFields(part), `${path}.output[${index}]`))
  return {
    type: 'tool_result',
    callId: toText(item.call_id),
    content: parts.filter((part) => part.type !== 'refusal'),
    isPlain,
    isError: false,
    path: `${path}.call_id`,
  }
}

const WEB_SEARCH = /^web_search/

export const readOfferedTools = (tools: unknown): OfferedTool[] =>
  toList(tools).flatMap((tool, index) => readTool(toFields(tool), `tools[${index}]`))

function readTool(tool: LooseObject, path: string, namespace?: string): OfferedTool[] {
  const type = toText(tool.type)
  const named = {
    name: toText(tool.name),
    ...(namespace !== undefined && { namespace }),
    description: toText(tool.description) || null,
    path,
  }
  if (type === 'function') {
    const schema = isObject(tool.parameters) ? tool.parameters : null
    return [{ type: 'function', ...named, schema, isStrict: tool.strict === true }]
  }
  if (type === 'custom')
    return [{ type: 'custom', ...named, format: isObject(tool.format) ? tool.format : null }]
  if (type === 'namespace')
    return toList(tool.tools).flatMap((inner, index) =>
      readTool(toFields(inner), `${path}.tools[${index}]`, toText(tool.name)),
    )
  if (!WEB_SEARCH.test(type)) return [{ type: 'other', name: type, given: tool, path }]
  const { type: _, ...location } = toFields(tool.user_location)
  const contextSize = toText(tool.search_context_size)
  return [
    {
      type: 'web_search',
      allowedDomains: toList(toFields(tool.filters).allowed_domains).map(toText),
      blockedDomains: [],
      location: Object.keys(location).length === 0 ? null : location,
      contextSize: contextSize === '' || contextSize === 'medium' ? null : contextSize,
      maxUses: null,
      given: tool,
      path,
    },
  ]
}

function readChoice(choice: unknown, dropped: DroppedFields): Conversation['toolChoice'] {
  const field = 'tool_choice'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { field, value: choice }
  const { type, name, mode, tools } = toFields(choice)
  if (type === 'function' || type === 'custom') return { field, value: { name: toText(name) } }
  if (type === 'allowed_tools') {
    const allowed = toList(tools).map((tool) => toText(toFields(tool).name))
    const value: ToolChoice = { mode: mode === 'required' ? 'required' : 'auto', allowed }
    return { field, value }
  }
  if (choice != null) dropped.add(field)
  return null
}

function readSettings(request: LooseObject, dropped: DroppedFields): ConversationSettings {
  const { reasoning, text, metadata, service_tier: tier, top_logprobs: top } = request
  const { format, verbosity } = toFields(text)
  if (typeof top === 'number' && top > 0) dropped.add('top_logprobs')
  const isTier = tier !== 'auto' && tier !== 'default'
  return {
    temperature: readNumber('temperature', request.temperature),
    topP: readNumber('top_p', request.top_p),
    presencePenalty: readNumber('presence_penalty', request.presence_penalty || undefined),
    frequencyPenalty: readNumber('frequency_penalty', request.frequency_penalty || undefined),
    reasoning: readReasoning(toFields(reasoning)),
    format: readFormat(toFields(format)),
    verbosity: verbosity === 'medium' ? undefined : readText('text.verbosity', verbosity),
    singleCall:
      request.parallel_tool_calls === false ? { field: 'parallel_tool_calls', value: true } : undefined,
    user: readText('safety_identifier', request.safety_identifier) ?? readText('user', request.user),
    metadata:
      Object.keys(toFields(metadata)).length === 0
        ? undefined
        : { field: 'metadata', value: toFields(metadata) },
    cacheKey: readText('prompt_cache_key', request.prompt_cache_key),
    serviceTier: isTier ? readText('service_tier', tier) : undefined,
  }
}

function readReasoning({ effort, summary }: LooseObject): ConversationSettings['reasoning'] {
  const isHidden = summary == null
  if (typeof effort === 'string') {
    const depth: ReasoningDepth = effort === 'none' ? { type: 'off' } : { type: 'effort', effort }
    return { field: 'reasoning.effort', value: { depth, isHidden } }
  }
  // The vendor's models reason unless told otherwise: the client wants to see it.
  return isHidden
    ? undefined
    : { field: 'reasoning.summary', value: { depth: { type: 'adaptive' }, isHidden } }
}

function readFormat(format: LooseObject): ConversationSettings['format'] {
  const { type, schema } = format
  const field = 'text.format'
  if (type === 'json_object') return { field, value: { type: 'json' } }
  if (type !== 'json_schema' || !isObject(schema)) return undefined
  return { field, value: readSchemaFormat(format, schema, `${field}.schema`) }
}
