/**
 * Translates a chat-completions request to the messages protocol. A field without a counterpart is dropped and named.
 * See docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import {
  type TranslatableChatRequest,
  translatableChatRequest,
} from '../../../../schemas/chat/chat-completions-conversation.ts'
import { ESTIMATE_OUTPUT_CAP_TOKENS } from '../../../../schemas/config/catalog.ts'
import { nameFieldsLeftOut, nameMessageFieldsLeftOut } from '../../chat-completions/fields.ts'
import { withTools } from '../../chat-completions/legacy-functions.ts'
import { THINKING_FIELDS, wantedThinking } from '../../chat-completions/wanted-thinking.ts'
import type { ChatCall, EncodedRequest, EncodeOptions } from '../../dialect.ts'
import { fieldsOf, type LooseObject } from '../../loose.ts'
import { familyOf, type ModelFamily } from '../../messages/family.ts'
import { outputFormat } from '../../messages/output-format.ts'
import { messagesThinking } from '../../messages/thinking.ts'
import { mayThink, toolsUsed } from '../../messages/turns.ts'
import { readClientJson } from '../../request/client-json.ts'
import { parsedBody } from '../chat-completions.ts'
import { DroppedFields } from '../dropped-fields.ts'
import { linkedFilesOf } from '../linked-files.ts'
import { translateConversation } from './conversation.ts'
import { isForced, type SentTools, translateTools } from './tools.ts'

/** Fields that are sent to the upstream, or named where they are read. */
const SAID = [
  'tools',
  'web_search_options',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'user',
  'safety_identifier',
  'metadata',
  'cache_control',
  ...THINKING_FIELDS,
] as const

const MAX_TEMPERATURE = 1
/** The least that the protocol takes of a model that thinks. */
const MIN_THINKING_TOP_P = 0.95
const MAX_USER_ID_CHARS = 256

/**
 * Returns the http(s) URLs of files, each once.
 * @throws Failure `invalid_request` with a message that names the field
 */
export const filesToFetch = (call: ChatCall): readonly string[] =>
  linkedFilesOf(readClientJson(translatableChatRequest, parsedBody(call)).messages)

/** @throws Failure `invalid_request` with a message that names the field */
export function translateRequest(
  call: ChatCall,
  { upstreamModel, outputCeiling, fetched }: EncodeOptions,
): EncodedRequest {
  const given = parsedBody(call)
  const request = readClientJson(translatableChatRequest, given)
  const dropped = new DroppedFields()
  const isBySchema = fieldsOf(request.response_format).type === 'json_schema'
  nameFieldsLeftOut(given, isBySchema ? [...SAID, 'response_format'] : SAID, dropped)
  nameMessageFieldsLeftOut(request.messages, ['cache_control'], dropped)
  const asked = withTools(request)
  const { system, turns } = translateConversation(asked.messages, fetched)
  const family = familyOf(upstreamModel)
  const { tools, choice } = translateTools(asked, toolsUsed(turns), family, dropped)
  const limit = call.outputLimit ?? outputCeiling ?? ESTIMATE_OUTPUT_CAP_TOKENS
  const turn = { isForced: isForced(choice), mayThink: mayThink(turns), limit, family }
  const thinking = messagesThinking(wantedThinking(request, dropped), turn, dropped)
  const thinks = thinking?.isOn === true
  const output = outputFormat(
    request.response_format,
    { family, hasTools: tools.length > 0, thinks },
    dropped,
  )
  const config = {
    ...(output?.type === 'output_config' ? output.value : {}),
    ...(thinking?.effort == null ? {} : { effort: thinking.effort }),
  }
  const wire = {
    model: upstreamModel,
    max_tokens: limit,
    ...(system.length === 0 ? {} : { system }),
    messages: turns,
    ...(output?.type === 'tool' ? byTool(output.tool) : offered(tools, choice)),
    ...(Object.keys(config).length === 0 ? {} : { output_config: config }),
    ...(thinking?.thinking == null ? {} : { thinking: thinking.thinking }),
    ...(request.cache_control == null ? {} : { cache_control: request.cache_control }),
    ...sampling(request, thinks, family, dropped),
    ...stopSequences(request, dropped),
    ...metadata(request, dropped),
    ...(call.stream ? { stream: true } : {}),
  }
  return { body: Buffer.from(JSON.stringify(wire), 'utf8'), ...dropped.all() }
}

const offered = (tools: SentTools['tools'], choice: SentTools['choice']): object => ({
  ...(tools.length === 0 ? {} : { tools }),
  ...(choice === null ? {} : { tool_choice: choice }),
})

const byTool = (tool: LooseObject): object => ({
  tools: [tool],
  tool_choice: { type: 'tool', name: tool.name, disable_parallel_tool_use: true },
})

function sampling(
  request: TranslatableChatRequest,
  thinks: boolean,
  family: ModelFamily,
  dropped: DroppedFields,
): object {
  const { temperature, top_p: topP } = request
  const topK = request.top_k != null && request.top_k > 0 ? request.top_k : null
  if (family.sampling === 'none') {
    const settings = { temperature, top_p: topP, top_k: topK }
    // 1 is the default of temperature and top_p; as top_k it is a setting.
    for (const [name, value] of Object.entries(settings))
      if (value != null && (value !== 1 || name === 'top_k'))
        dropped.add(name, 'this model has no such setting')
    return {}
  }
  if (thinks) {
    if (temperature != null && temperature !== MAX_TEMPERATURE)
      dropped.add('temperature', 'not together with thinking')
    if (topK !== null) dropped.add('top_k', 'not together with thinking')
    if (topP == null || topP >= MIN_THINKING_TOP_P) return topP == null ? {} : { top_p: topP }
    dropped.add('top_p', 'not below 0.95 together with thinking')
    return {}
  }
  if (temperature != null && temperature > MAX_TEMPERATURE)
    dropped.change('temperature', 'lowered to 1, the most this model takes')
  // At 1 each of the two changes nothing, and there are models that refuse them together.
  const mustChoose = family.sampling === 'one' && temperature != null && topP != null && topP !== 1
  const choosesTopP = mustChoose && temperature >= MAX_TEMPERATURE
  if (mustChoose && !choosesTopP) dropped.add('top_p', 'not together with temperature for this model')
  const sendsTopP = topP != null && (mustChoose ? choosesTopP : !(topP === 1 && temperature != null))
  const sendsTemperature = temperature != null && !choosesTopP
  return {
    ...(sendsTemperature ? { temperature: Math.min(temperature, MAX_TEMPERATURE) } : {}),
    ...(sendsTopP ? { top_p: topP } : {}),
    ...(topK === null ? {} : { top_k: topK }),
  }
}

function stopSequences({ stop }: TranslatableChatRequest, dropped: DroppedFields): object {
  const given = typeof stop === 'string' ? [stop] : (stop ?? [])
  const sent = given.filter((sequence) => sequence.trim() !== '')
  if (given.length > 0 && sent.length === 0) dropped.add('stop', 'blank sequences')
  else if (sent.length < given.length) dropped.change('stop', 'without its blank sequences')
  return sent.length === 0 ? {} : { stop_sequences: sent }
}

/** Returns the metadata. The protocol has one id of the client's user: the first in the request. */
function metadata(request: TranslatableChatRequest, dropped: DroppedFields): object {
  const { user_id: userId, ...others } = fieldsOf(request.metadata)
  if (Object.keys(others).length > 0) {
    if (userId == null) dropped.add('metadata')
    else dropped.change('metadata', 'only user_id')
  }
  const ids = [
    ['user', request.user],
    ['safety_identifier', request.safety_identifier],
    ['metadata.user_id', userId],
  ] as const
  const [first, ...rest] = ids.filter(([, id]) => id != null && id !== '')
  if (first === undefined) return {}
  const [field, id] = first
  for (const [other, otherId] of rest) if (otherId !== id) dropped.add(other, `${field} goes before it`)
  if (typeof id === 'string' && id.length <= MAX_USER_ID_CHARS) return { metadata: { user_id: id } }
  dropped.add(field, typeof id === 'string' ? 'longer than 256 characters' : 'not a string')
  return {}
}
