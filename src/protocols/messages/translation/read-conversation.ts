/**
 * Reads a request of the messages protocol into the canonical conversation. What that cannot hold is named. See
 * docs/translation.md, "The request".
 */
import type {
  CacheMark,
  Conversation,
  ConversationSettings,
  ConversationTurn,
  FileSource,
  GivenFile,
  OfferedTool,
  Reasoning,
  ReasoningDepth,
  SaidText,
  ToolChoice,
  ToolResult,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import { ADVISOR } from '../../request/tools.ts'
import { type DroppedFields, nameOthers } from '../../translate/dropped-fields.ts'
import { readLink } from '../../translate/linked-files.ts'
import { readSeal } from '../../translate/seal.ts'
import { readNumber, readText } from '../../translate/settings.ts'

/** Fields that the conversation holds, and those that the gateway obeys or that mean nothing without the vendor. */
const HELD: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'temperature', 'top_p', 'top_k'],
  ...['stop_sequences', 'tools', 'tool_choice', 'thinking', 'output_config', 'metadata', 'service_tier'],
  ...['cache_control'],
])

/** Returns whether a tool is another model, which no upstream gets; adds its name to `dropped`. */
function isAdvisor({ type }: LooseObject, dropped: DroppedFields): boolean {
  const isFound = ADVISOR.test(toText(type))
  if (isFound) dropped.add('advisor')
  return isFound
}

/**
 * @param request the client's request, parsed and valid
 * @throws Failure `invalid_request` with a message that names the field
 */
export function readMessagesConversation(request: LooseObject, dropped: DroppedFields): Conversation {
  nameOthers(request, HELD, dropped)
  const reader = new BlockReader(dropped)
  const instructions = reader.texts(request.system, 'system')
  const turns: ConversationTurn[] = []
  for (const [index, message] of toList(request.messages).map(toFields).entries()) {
    const path = `messages[${index}].content`
    if (message.role === 'system') instructions.push(...reader.texts(message.content, path))
    else
      turns.push({
        role: message.role === 'assistant' ? 'assistant' : 'user',
        parts: reader.parts(message.content, path),
      })
  }
  const cache = readMark(request)
  return {
    instructions,
    turns,
    tools: toList(request.tools)
      .map(toFields)
      .filter((tool) => !isAdvisor(tool, dropped))
      .map((tool, index) => readTool(tool, `tools[${index}]`)),
    toolChoice: readChoice(request.tool_choice),
    isParallel: toFields(request.tool_choice).disable_parallel_tool_use !== true,
    ...(cache !== undefined && { cache }),
    settings: readSettings(request, dropped),
  }
}

const readMark = ({ cache_control: mark }: LooseObject): CacheMark | undefined =>
  isObject(mark) ? mark : undefined

const withMark = <Value extends object>(value: Value, given: LooseObject): Value => {
  const cache = readMark(given)
  return cache === undefined ? value : { ...value, cache }
}

class BlockReader {
  readonly #dropped: DroppedFields

  constructor(dropped: DroppedFields) {
    this.#dropped = dropped
  }

  texts(content: unknown, path: string): SaidText[] {
    return this.parts(content, path).filter((part) => part.type === 'text')
  }

  parts(content: unknown, path: string): TurnPart[] {
    if (typeof content === 'string') return [{ type: 'text', text: content }]
    return toList(content).flatMap((block, index) => this.#part(toFields(block), `${path}[${index}]`))
  }

  #part(block: LooseObject, path: string): TurnPart[] {
    switch (block.type) {
      case 'text':
        return [withMark({ type: 'text', text: toText(block.text) }, block)]
      case 'image':
      case 'document':
        return this.#file(block, path)
      case 'search_result':
        return [withMark({ type: 'text', text: searchText(block) }, block)]
      case 'thinking':
        return readThinking(block)
      case 'redacted_thinking': {
        const seal = readSeal(toText(block.data), 'messages')
        return seal === null ? [] : [{ type: 'reasoning', text: '', seal: { ...seal, isRedacted: true } }]
      }
      case 'tool_use':
        return [
          withMark(
            {
              type: 'tool_call',
              id: toText(block.id),
              name: toText(block.name),
              kind: 'function',
              input: JSON.stringify(block.input ?? {}),
              seal: null,
              path: `${path}.input`,
            },
            block,
          ),
        ]
      case 'tool_result':
        return [withMark(this.#result(block, path), block)]
      case 'tool_reference':
        return [{ type: 'text', text: `The tool ${toText(block.tool_name)} is available.` }]
      default:
        // Mostly of tools that the vendor has run: no other upstream can read them.
        this.#dropped.add(toText(block.type))
        return []
    }
  }

  #file(block: LooseObject, path: string): (SaidText | GivenFile)[] {
    const source = toFields(block.source)
    const named = toText(block.title) === '' ? {} : { filename: toText(block.title) }
    switch (source.type) {
      case 'base64':
      case 'url':
        return [
          withMark(
            {
              type: block.type === 'image' ? 'image' : 'file',
              source: readSource(source, `${path}.source`),
              ...named,
              path: `${path}.source`,
            },
            block,
          ),
        ]
      case 'text':
        return [withMark({ type: 'text', text: toText(source.data) }, block)]
      case 'content':
        return this.parts(source.content, `${path}.source.content`).filter(
          (part) => part.type === 'text' || 'source' in part,
        )
      default:
        throw invalidField(`${path}.source.type`, 'such a source cannot be translated for this model')
    }
  }

  #result(block: LooseObject, path: string): ToolResult {
    const parts = this.parts(block.content ?? [], `${path}.content`)
    return {
      type: 'tool_result',
      callId: toText(block.tool_use_id),
      content: parts.filter((part) => part.type === 'text' || 'source' in part),
      isPlain: typeof block.content === 'string',
      isError: block.is_error === true,
      path: `${path}.tool_use_id`,
    }
  }
}

function readSource(source: LooseObject, path: string): FileSource {
  if (source.type === 'url') return { type: 'link', url: readLink(toText(source.url), `${path}.url`) }
  return { type: 'inline', mediaType: toText(source.media_type), base64: toText(source.data) }
}

function readThinking(block: LooseObject): Reasoning[] {
  const text = toText(block.thinking)
  const seal = readSeal(toText(block.signature), 'messages')
  return text === '' && seal === null ? [] : [{ type: 'reasoning', text, seal }]
}

function searchText({ title, source, content }: LooseObject): string {
  const said = toList(content).map((block) => toText(toFields(block).text))
  return [`${toText(title)} (${toText(source)})`, ...said].join('\n')
}

/** Such as `web_search_20250305`. */
const WEB_SEARCH = /^web_search(_\d{8})?$/
/** Tools in the vendor's own words that clients run. Their schemas are the vendor's. */
const isClientTool = ({ type }: LooseObject): boolean => type == null || type === 'custom'

function readTool(tool: LooseObject, path: string): OfferedTool {
  const type = toText(tool.type)
  if (isClientTool(tool))
    return withMark(
      {
        type: 'function',
        name: toText(tool.name),
        description: toText(tool.description) || null,
        schema: isObject(tool.input_schema) ? tool.input_schema : null,
        isStrict: tool.strict === true,
        path,
      },
      tool,
    )
  if (!WEB_SEARCH.test(type)) return { type: 'other', name: type, given: tool, path }
  const location = { ...toFields(tool.user_location) }
  return withMark(
    {
      type: 'web_search',
      allowedDomains: toList(tool.allowed_domains).map(toText),
      blockedDomains: toList(tool.blocked_domains).map(toText),
      location: Object.keys(location).length === 0 ? null : location,
      contextSize: null,
      maxUses: typeof tool.max_uses === 'number' ? tool.max_uses : null,
      given: tool,
      path,
    },
    tool,
  )
}

const CHOICES: Readonly<Record<string, ToolChoice>> = { auto: 'auto', any: 'required', none: 'none' }

function readChoice(choice: unknown): Conversation['toolChoice'] {
  const { type, name } = toFields(choice)
  const value = type === 'tool' ? { name: toText(name) } : CHOICES[toText(type)]
  return value === undefined ? null : { field: 'tool_choice', value }
}

function readSettings(request: LooseObject, dropped: DroppedFields): ConversationSettings {
  const { thinking, output_config: output, metadata, service_tier: tier } = request
  const stop = toList(request.stop_sequences).map(toText)
  const { user_id: user } = toFields(metadata)
  for (const name of Object.keys(toFields(output)))
    if (name !== 'effort' && name !== 'format') dropped.add(`output_config.${name}`)
  const isSingle = toFields(request.tool_choice).disable_parallel_tool_use === true
  // `auto` is what other upstreams do anyway.
  const isTier = typeof tier === 'string' && tier !== 'auto' && tier !== 'standard_only'
  return {
    temperature: readNumber('temperature', request.temperature),
    topP: readNumber('top_p', request.top_p),
    topK: readNumber('top_k', request.top_k),
    stop: stop.length === 0 ? undefined : { field: 'stop_sequences', value: stop },
    reasoning: readReasoning(toFields(thinking), toText(toFields(output).effort)),
    format: readFormat(toFields(toFields(output).format)),
    user: readText('metadata.user_id', user),
    serviceTier: isTier ? { field: 'service_tier', value: tier } : undefined,
    singleCall: isSingle ? { field: 'disable_parallel_tool_use', value: true } : undefined,
  }
}

function readReasoning(thinking: LooseObject, effort: string): ConversationSettings['reasoning'] {
  const depth = readDepth(thinking, effort)
  const isHidden = thinking.display === 'omitted'
  return depth === null ? undefined : { field: 'thinking', value: { depth, isHidden } }
}

function readDepth({ type, budget_tokens: tokens }: LooseObject, effort: string): ReasoningDepth | null {
  if (type === 'disabled') return { type: 'off' }
  if (effort !== '') return { type: 'effort', effort }
  if (type === 'enabled' && typeof tokens === 'number') return { type: 'budget', tokens }
  return type === 'adaptive' ? { type: 'adaptive' } : null
}

function readFormat({ type, schema }: LooseObject): ConversationSettings['format'] {
  if (type !== 'json_schema' || !isObject(schema)) return undefined
  const path = 'output_config.format.schema'
  return {
    field: 'output_config.format',
    value: { type: 'schema', name: null, description: null, schema, isStrict: true, path },
  }
}
