/**
 * Writes a conversation as a chat-completions request. What the protocol cannot say is named. See docs/translation.md,
 * "The request".
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
  Seal,
  ToolCall,
  ToolChoice,
  ToolResult,
} from '../../../../schemas/chat/conversation.ts'
import type { ChatCall, EncodeOptions } from '../../dialect.ts'
import type { LooseObject } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import { readCacheKey } from '../../translate/cache-key.ts'
import { type DroppedFields, nameSettings } from '../../translate/dropped-fields.ts'
import { nearestEffort, printFileUrl } from '../../translate/settings.ts'
import { CUSTOM_INPUT_SCHEMA, customArguments, flatName } from '../../translate/tool-names.ts'

/** @throws Failure `invalid_request` with a message that names the field */
export function writeCompletionRequest(
  conversation: Conversation,
  call: ChatCall,
  options: EncodeOptions,
  dropped: DroppedFields,
): Buffer {
  const { settings, instructions } = conversation
  const { upstreamModel, outputCeiling, outputLimitField, askUsage } = options
  nameSettings(settings, ['topK'], dropped)
  const cacheKey = readCacheKey(conversation, dropped)
  const limit = call.outputLimit ?? outputCeiling
  const tools = listAllowedTools(conversation).flatMap((tool) => writeTool(tool, dropped))
  const wire = {
    model: upstreamModel,
    messages: [
      ...(instructions.length === 0 ? [] : [{ role: 'system', content: writeContent(instructions) }]),
      ...joinAnswers(conversation.turns).flatMap((turn) => writeTurn(turn, dropped)),
    ],
    ...(limit !== null && { [outputLimitField ?? 'max_tokens']: limit }),
    ...(tools.length > 0 && { tools, ...writeChoice(conversation) }),
    ...writeSettings(settings),
    ...(cacheKey !== null && { prompt_cache_key: cacheKey }),
    ...(call.stream && { stream: true, ...(askUsage && { stream_options: { include_usage: true } }) }),
  }
  return Buffer.from(JSON.stringify(wire), 'utf8')
}

/** Returns plain text where that says all: upstreams that are not the vendor's own may take nothing else. */
function writeContent(parts: readonly (SaidText | GivenFile)[]): string | LooseObject[] {
  if (parts.every(({ type }) => type === 'text'))
    return parts.map((part) => (part as SaidText).text).join('\n\n')
  return parts.map(writePart)
}

function writePart(part: SaidText | GivenFile): LooseObject {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const url = printFileUrl(part.source)
  switch (part.type) {
    case 'image': {
      const detail = part.detail === undefined ? {} : { detail: part.detail.value }
      return { type: 'image_url', image_url: { url, ...detail } }
    }
    case 'video':
      return { type: 'video_url', video_url: { url } }
    case 'file':
      return { type: 'file', file: { file_data: url, filename: part.filename ?? 'file' } }
    case 'audio': {
      const { source, path } = part
      if (source.type === 'link') throw invalidField(path, 'this model takes audio inside the request only')
      const format = source.mediaType.replace(/^audio\/(x-)?/, '').replace('mpeg', 'mp3')
      return { type: 'input_audio', input_audio: { data: source.base64, format } }
    }
  }
}

/** Returns the turns with neighbouring ones of the assistant as one: results must follow the message with all their calls. */
function joinAnswers(turns: readonly ConversationTurn[]): ConversationTurn[] {
  const joined: ConversationTurn[] = []
  for (const turn of turns) {
    const last = joined.at(-1)
    if (last === undefined || last.role === 'user' || turn.role === 'user') joined.push(turn)
    else joined[joined.length - 1] = { role: turn.role, parts: [...last.parts, ...turn.parts] }
  }
  return joined
}

function writeTurn({ role, parts }: ConversationTurn, dropped: DroppedFields): LooseObject[] {
  return role === 'user' ? writeUserTurn(parts) : writeAssistantTurn(parts, dropped)
}

/** Returns one message for each result of a tool. Files in a result follow in a user's message: the protocol's results hold text only. */
function writeUserTurn(parts: ConversationTurn['parts']): LooseObject[] {
  const results: LooseObject[] = []
  const said: (SaidText | GivenFile)[] = []
  for (const part of parts) {
    if (part.type === 'tool_result') {
      results.push(writeResult(part))
      said.push(...part.content.filter((each) => each.type !== 'text'))
    } else if (part.type === 'text' || 'source' in part) said.push(part)
  }
  return said.length === 0 ? results : [...results, { role: 'user', content: writeContent(said) }]
}

function writeResult({ callId, content, isError }: ToolResult): LooseObject {
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return { role: 'tool', tool_call_id: callId, content: isError ? `Error: ${text}` : text }
}

function writeAssistantTurn(parts: ConversationTurn['parts'], dropped: DroppedFields): LooseObject[] {
  const said: SaidText[] = []
  const thoughts: Reasoning[] = []
  const calls: ToolCall[] = []
  let refusal = ''
  let callSeal: Seal | null = null
  for (const part of parts) {
    if (part.type === 'text') said.push(part)
    else if (part.type === 'reasoning' && part.seal?.isOfCall === true) callSeal = part.seal
    else if (part.type === 'reasoning') thoughts.push(part)
    else if (part.type === 'tool_call') {
      calls.push({ ...part, seal: part.seal ?? callSeal })
      callSeal = null
    } else if (part.type === 'refusal') refusal += part.text
    else if ('source' in part) dropped.add(part.field ?? part.path)
  }
  if (said.length + calls.length === 0 && refusal === '' && thoughts.length === 0) return []
  return [
    {
      role: 'assistant',
      content: said.length === 0 ? null : writeContent(said),
      ...(refusal !== '' && { refusal }),
      ...writeThoughts(thoughts),
      ...(calls.length > 0 && { tool_calls: calls.map(writeCall) }),
    },
  ]
}

/** Returns the reasoning, which models that call tools need again, and the seals that this protocol's upstream gave. */
function writeThoughts(thoughts: readonly Reasoning[]): LooseObject {
  const own = thoughts.filter(({ seal }) => seal === null || seal.protocol === 'chat-completions')
  const text = own.map((thought) => thought.text).join('')
  const blocks = own.flatMap(({ text: thinking, seal }): LooseObject[] => {
    if (seal === null) return []
    const { data, isRedacted } = seal
    return isRedacted
      ? [{ type: 'redacted_thinking', data }]
      : [{ type: 'thinking', thinking, signature: data }]
  })
  return {
    ...(text !== '' && { reasoning_content: text }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
  }
}

const writeCall = (call: ToolCall): LooseObject => ({
  id: call.id,
  type: 'function',
  function: {
    name: flatName(call),
    arguments: call.kind === 'custom' ? customArguments(call.input) : call.input || '{}',
  },
  ...(call.seal?.protocol === 'chat-completions' && {
    extra_content: { google: { thought_signature: call.seal.data } },
  }),
})

function writeTool(tool: OfferedTool, dropped: DroppedFields): LooseObject[] {
  if (tool.type === 'web_search' || tool.type === 'other') {
    dropped.add(tool.type === 'other' ? tool.name : 'web_search')
    return []
  }
  const { description } = tool
  const offered = {
    name: flatName(tool),
    ...(description !== null && { description }),
    ...(tool.type === 'custom'
      ? { parameters: CUSTOM_INPUT_SCHEMA }
      : tool.schema !== null && { parameters: tool.schema }),
    ...(tool.type === 'function' && tool.isStrict && { strict: true }),
  }
  return [{ type: 'function', function: offered }]
}

/** Returns all tools, or those to which the choice is limited: few upstreams take such a choice. */
function listAllowedTools({ tools, toolChoice }: Conversation): readonly OfferedTool[] {
  const choice = toolChoice?.value
  if (typeof choice !== 'object' || !('allowed' in choice)) return tools
  return tools.filter((tool) => 'name' in tool && choice.allowed.includes(tool.name))
}

function writeChoice({ toolChoice, isParallel }: Conversation): LooseObject {
  const choice = toolChoice === null ? {} : { tool_choice: writeChosen(toolChoice.value) }
  return { ...choice, ...(!isParallel && { parallel_tool_calls: false }) }
}

function writeChosen(choice: ToolChoice): unknown {
  if (typeof choice === 'string') return choice
  if ('name' in choice) return { type: 'function', function: { name: choice.name } }
  return choice.mode
}

function writeSettings(settings: ConversationSettings): LooseObject {
  const { temperature, topP, stop, seed, choices, presencePenalty, frequencyPenalty } = settings
  const { reasoning, format, verbosity, logprobs, topLogprobs, modalities, speech } = settings
  const { user, metadata, serviceTier } = settings
  return {
    ...(temperature && { temperature: temperature.value }),
    ...(topP && { top_p: topP.value }),
    ...(stop && { stop: stop.value }),
    ...(seed && { seed: seed.value }),
    ...(choices && { n: choices.value }),
    ...(presencePenalty && { presence_penalty: presencePenalty.value }),
    ...(frequencyPenalty && { frequency_penalty: frequencyPenalty.value }),
    ...(reasoning && writeEffort(reasoning.value)),
    ...(format && { response_format: writeFormat(format.value) }),
    ...(verbosity && { verbosity: verbosity.value }),
    ...(logprobs && { logprobs: true }),
    ...(topLogprobs && { top_logprobs: topLogprobs.value }),
    ...(modalities && { modalities: modalities.value }),
    ...(speech && { audio: speech.value }),
    ...(user && { user: user.value }),
    ...(metadata && { metadata: metadata.value }),
    ...(serviceTier && { service_tier: serviceTier.value }),
  }
}

/** Returns the effort for the depth: the protocol has no budget. */
function writeEffort({ depth }: NonNullable<ConversationSettings['reasoning']>['value']): LooseObject {
  switch (depth.type) {
    case 'off':
      return { reasoning_effort: 'none' }
    case 'adaptive':
      return {}
    case 'effort':
      return { reasoning_effort: depth.effort }
    case 'budget':
      return { reasoning_effort: nearestEffort(depth.tokens) }
  }
}

function writeFormat(format: NonNullable<ConversationSettings['format']>['value']): LooseObject {
  if (format.type !== 'schema') return { type: 'json_object' }
  const { name, description, schema, isStrict } = format
  return {
    type: 'json_schema',
    json_schema: {
      name: name ?? 'answer',
      ...(description !== null && { description }),
      schema,
      strict: isStrict,
    },
  }
}
