/**
 * Writes a conversation as a request of the responses protocol. What the protocol cannot say is named. See
 * docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import type {
  Conversation,
  ConversationSettings,
  ConversationTurn,
  GivenFile,
  OfferedTool,
  Reasoning,
  SaidText,
  ToolCall,
  ToolChoice,
  ToolResult,
} from '../../../../schemas/chat/conversation.ts'
import type { ChatCall, EncodeOptions } from '../../dialect.ts'
import type { LooseObject } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import { readCacheKey } from '../../translate/cache-key.ts'
import { type DroppedFields, nameSearchOptions, nameSettings } from '../../translate/dropped-fields.ts'
import { nearestEffort, printFileUrl } from '../../translate/settings.ts'

/** Settings that the protocol does not have. */
const ABSENT = [
  ...(['topK', 'stop', 'seed', 'choices', 'presencePenalty', 'frequencyPenalty'] as const),
  ...(['logprobs', 'topLogprobs', 'modalities', 'speech'] as const),
]

/** The vendor's limit for the id of a user. */
const MAX_USER_CHARS = 64
/** The vendor refuses a lower limit. */
const MIN_OUTPUT_TOKENS = 16

/** @throws Failure `invalid_request` with a message that names the field */
export function writeResponsesRequest(
  conversation: Conversation,
  call: ChatCall,
  { upstreamModel, outputCeiling }: EncodeOptions,
  dropped: DroppedFields,
): Buffer {
  const { settings, instructions, turns, tools, isParallel } = conversation
  nameSettings(settings, ABSENT, dropped)
  const { user } = settings
  if (user !== undefined && user.value.length > MAX_USER_CHARS)
    dropped.add(user.field, `longer than ${MAX_USER_CHARS} characters`)
  const cacheKey = readCacheKey(conversation, dropped)
  const limit = call.outputLimit ?? outputCeiling
  if (limit !== null && limit < MIN_OUTPUT_TOKENS)
    dropped.change('max_output_tokens', `raised to ${MIN_OUTPUT_TOKENS}, the least this model takes`)
  const offered = writeTools(tools, dropped)
  const wire = {
    model: upstreamModel,
    ...writeInput(instructions, turns),
    ...(limit !== null && { max_output_tokens: Math.max(limit, MIN_OUTPUT_TOKENS) }),
    ...(offered.length > 0 && {
      tools: offered,
      ...(conversation.toolChoice !== null && { tool_choice: writeChoice(conversation.toolChoice.value) }),
      ...(!isParallel && { parallel_tool_calls: false }),
    }),
    ...writeSettings(settings),
    ...(cacheKey !== null && { prompt_cache_key: cacheKey }),
    // The client sends the whole conversation: nothing has to be kept.
    store: false,
    include: ['reasoning.encrypted_content'],
    ...(call.stream && { stream: true }),
  }
  return Buffer.from(JSON.stringify(wire), 'utf8')
}

/** Returns the conversation. Instructions on their own are its input: the vendor refuses an empty one. */
function writeInput(instructions: readonly SaidText[], turns: readonly ConversationTurn[]): LooseObject {
  const input = turns.flatMap(writeTurn)
  if (instructions.length === 0) return { input }
  if (input.length === 0)
    return { input: [{ type: 'message', role: 'developer', content: instructions.map(inputText) }] }
  return { instructions: instructions.map(({ text }) => text).join('\n\n'), input }
}

/** Returns the items of a turn: neighbouring texts and files make one message. */
function writeTurn({ role, parts }: ConversationTurn): LooseObject[] {
  const items: LooseObject[] = []
  let content: LooseObject[] = []
  const endMessage = (): void => {
    if (content.length > 0) items.push({ type: 'message', role, content })
    content = []
  }
  const add = (item: LooseObject | null): void => {
    endMessage()
    if (item !== null) items.push(item)
  }
  for (const part of parts) {
    if (part.type === 'text')
      content.push(role === 'user' ? inputText(part) : { type: 'output_text', text: part.text })
    else if (part.type === 'refusal') content.push({ type: 'refusal', refusal: part.text })
    else if (part.type === 'reasoning') add(writeReasoning(part))
    else if (part.type === 'tool_call') add(writeCall(part))
    else if (part.type === 'tool_result') add(writeResult(part))
    // A picture of an earlier answer can only come from the user.
    else if (role === 'assistant') add({ type: 'message', role: 'user', content: [writeFile(part)] })
    else content.push(writeFile(part))
  }
  endMessage()
  return items
}

const inputText = ({ text }: SaidText): LooseObject => ({ type: 'input_text', text })

function writeFile({ type, source, filename, detail, path }: GivenFile): LooseObject {
  switch (type) {
    case 'image':
      return {
        type: 'input_image',
        image_url: printFileUrl(source),
        detail: detail?.value ?? 'auto',
      }
    case 'file':
      return source.type === 'link'
        ? { type: 'input_file', file_url: source.url }
        : { type: 'input_file', filename: filename ?? 'file', file_data: printFileUrl(source) }
    default:
      throw invalidField(path, `this model does not take ${type}`)
  }
}

/** Returns the item; the vendor refuses one without its own proof, which names the item's id. */
function writeReasoning({ text, seal }: Reasoning): LooseObject | null {
  if (seal?.protocol !== 'responses') return null
  const space = seal.data.indexOf(' ')
  const proved = seal.text ?? text
  return {
    type: 'reasoning',
    id: seal.data.slice(0, space),
    summary: proved === '' ? [] : [{ type: 'summary_text', text: proved }],
    encrypted_content: seal.data.slice(space + 1),
  }
}

function writeCall({ id, name, namespace, kind, input }: ToolCall): LooseObject {
  const called = { call_id: id, name, ...(namespace !== undefined && { namespace }) }
  return kind === 'custom'
    ? { type: 'custom_tool_call', ...called, input }
    : { type: 'function_call', ...called, arguments: input || '{}' }
}

function writeResult({ callId, content, isPlain, isError }: ToolResult): LooseObject {
  const [first] = content
  const said = content.map((part) => (part.type === 'text' ? inputText(part) : writeFile(part)))
  const marked = isError ? [{ type: 'input_text', text: 'Error:' }, ...said] : said
  const isText = isPlain && !isError && first?.type === 'text'
  return { type: 'function_call_output', call_id: callId, output: isText ? first.text : marked }
}

function writeTools(tools: readonly OfferedTool[], dropped: DroppedFields): LooseObject[] {
  return tools.flatMap((tool): LooseObject[] => {
    switch (tool.type) {
      case 'function': {
        const { type, name, description, schema, isStrict } = tool
        const parameters = schema ?? { type: 'object', properties: {} }
        return [{ type, name, ...(description !== null && { description }), parameters, strict: isStrict }]
      }
      case 'custom': {
        const { type, name, description, format } = tool
        return [
          { type, name, ...(description !== null && { description }), ...(format !== null && { format }) },
        ]
      }
      case 'web_search': {
        nameSearchOptions(tool, ['allowedDomains', 'location', 'contextSize'], dropped)
        const { type, allowedDomains, location, contextSize } = tool
        return [
          {
            type,
            ...(allowedDomains.length > 0 && { filters: { allowed_domains: allowedDomains } }),
            ...(location !== null && { user_location: { type: 'approximate', ...location } }),
            ...(contextSize !== null && { search_context_size: contextSize }),
          },
        ]
      }
      default:
        dropped.add(tool.name)
        return []
    }
  })
}

function writeChoice(choice: ToolChoice): unknown {
  if (typeof choice === 'string') return choice
  if ('name' in choice) return { type: 'function', name: choice.name }
  const tools = choice.allowed.map((name) => ({ type: 'function', name }))
  return { type: 'allowed_tools', mode: choice.mode, tools }
}

function writeSettings(settings: ConversationSettings): LooseObject {
  const { temperature, topP, reasoning, format, verbosity, user, metadata, serviceTier } = settings
  const text = {
    ...(format && { format: writeFormat(format.value) }),
    ...(verbosity && { verbosity: verbosity.value }),
  }
  return {
    ...(temperature && { temperature: temperature.value }),
    ...(topP && { top_p: topP.value }),
    ...(reasoning && { reasoning: writeReasoningDepth(reasoning.value) }),
    ...(Object.keys(text).length > 0 && { text }),
    ...(user && user.value.length <= MAX_USER_CHARS && { safety_identifier: user.value }),
    ...(metadata && { metadata: metadata.value }),
    ...(serviceTier && { service_tier: serviceTier.value }),
  }
}

function writeReasoningDepth({
  depth,
  isHidden,
}: NonNullable<ConversationSettings['reasoning']>['value']): LooseObject {
  const summary = isHidden ? {} : { summary: 'auto' }
  switch (depth.type) {
    case 'off':
      return { effort: 'none' }
    case 'adaptive':
      return summary
    case 'effort':
      return { effort: depth.effort, ...summary }
    case 'budget':
      return { effort: nearestEffort(depth.tokens), ...summary }
  }
}

function writeFormat(format: NonNullable<ConversationSettings['format']>['value']): LooseObject {
  if (format.type !== 'schema') return { type: 'json_object' }
  const { name, description, schema, isStrict } = format
  return {
    type: 'json_schema',
    name: name ?? 'answer',
    ...(description !== null && { description }),
    schema,
    strict: isStrict,
  }
}
