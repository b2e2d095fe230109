/**
 * Writes a conversation as a request of the messages protocol. What the protocol cannot say is named. See
 * docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import type { Conversation, ConversationSettings } from '../../../../schemas/chat/conversation.ts'
import { ESTIMATE_OUTPUT_CAP_TOKENS } from '../../../../schemas/config/catalog.ts'
import { findProvider } from '../../../channels/providers/presets.ts'
import type { ChatCall, EncodeOptions } from '../../dialect.ts'
import type { LooseObject } from '../../loose.ts'
import { hasMarks } from '../../translate/cache-key.ts'
import { type DroppedFields, nameSettings } from '../../translate/dropped-fields.ts'
import { type ModelFamily, readFamily } from './family.ts'
import { outputFormat } from './output-format.ts'
import { messagesThinking } from './thinking.ts'
import { mayThink, toolsUsed } from './turns.ts'
import { isForced, type SentTools, writeTools } from './write-tools.ts'
import { writeTurns } from './write-turns.ts'

/** Settings that the protocol does not have. */
const ABSENT = [
  ...(['seed', 'choices', 'presencePenalty', 'frequencyPenalty', 'verbosity', 'logprobs'] as const),
  ...(['topLogprobs', 'modalities', 'speech', 'serviceTier'] as const),
]
const MAX_TEMPERATURE = 1
/** The least that the protocol takes of a model that thinks. */
const MIN_THINKING_TOP_P = 0.95
const MAX_USER_ID_CHARS = 256

/** Most upstreams of the protocol fetch links themselves. */
export const fetchesLinks = (provider: string | undefined): boolean =>
  findProvider(provider)?.fetchesNothing !== true

/** @throws Failure `invalid_request` with a message that names the field */
export function writeMessagesRequest(
  conversation: Conversation,
  call: ChatCall,
  { upstreamModel, outputCeiling, fetched }: EncodeOptions,
  dropped: DroppedFields,
): Buffer {
  const { settings } = conversation
  // The upstream finds the place itself.
  const isKeyed = settings.cacheKey !== undefined && !hasMarks(conversation)
  const cache = isKeyed ? { type: 'ephemeral' } : conversation.cache
  nameSettings(settings, ABSENT, dropped)
  const { system, turns } = writeTurns(conversation, fetched, dropped)
  const family = readFamily(upstreamModel)
  const { tools, choice } = writeTools(conversation, toolsUsed(turns), family, dropped)
  const limit = call.outputLimit ?? outputCeiling ?? ESTIMATE_OUTPUT_CAP_TOKENS
  const turn = { isForced: isForced(choice), mayThink: mayThink(turns), limit, family }
  const thinking = messagesThinking(settings.reasoning, turn, dropped)
  const thinks = thinking?.isOn === true
  const output = outputFormat(settings.format, { family, hasTools: tools.length > 0, thinks }, dropped)
  const config = {
    ...(output?.type === 'output_config' ? output.value : {}),
    ...(thinking?.effort == null ? {} : { effort: thinking.effort }),
  }
  const wire = {
    model: upstreamModel,
    max_tokens: limit,
    ...(system.length === 0 ? {} : { system }),
    messages: turns,
    ...(output?.type === 'tool' ? byTool(output.tool) : offerTools(tools, choice)),
    ...(Object.keys(config).length === 0 ? {} : { output_config: config }),
    ...(thinking?.thinking == null ? {} : { thinking: thinking.thinking }),
    ...(cache === undefined ? {} : { cache_control: cache }),
    ...sampling(settings, thinks, family, dropped),
    ...stopSequences(settings, dropped),
    ...metadata(settings, dropped),
    ...(call.stream ? { stream: true } : {}),
  }
  return Buffer.from(JSON.stringify(wire), 'utf8')
}

const offerTools = (tools: SentTools['tools'], choice: SentTools['choice']): object => ({
  ...(tools.length === 0 ? {} : { tools }),
  ...(choice === null ? {} : { tool_choice: choice }),
})

const byTool = (tool: LooseObject): object => ({
  tools: [tool],
  tool_choice: { type: 'tool', name: tool.name, disable_parallel_tool_use: true },
})

function sampling(
  { temperature, topP, topK }: ConversationSettings,
  thinks: boolean,
  family: ModelFamily,
  dropped: DroppedFields,
): object {
  if (family.sampling === 'none') {
    // 1 is the default of temperature and top_p; as top_k it is a setting.
    for (const setting of [temperature, topP, topK])
      if (setting !== undefined && (setting.value !== 1 || setting === topK))
        dropped.add(setting.field, 'this model has no such setting')
    return {}
  }
  if (thinks) {
    if (temperature !== undefined && temperature.value !== MAX_TEMPERATURE)
      dropped.add(temperature.field, 'not together with thinking')
    if (topK !== undefined) dropped.add(topK.field, 'not together with thinking')
    if (topP === undefined || topP.value >= MIN_THINKING_TOP_P)
      return topP === undefined ? {} : { top_p: topP.value }
    dropped.add(topP.field, 'not below 0.95 together with thinking')
    return {}
  }
  if (temperature !== undefined && temperature.value > MAX_TEMPERATURE)
    dropped.change(temperature.field, 'lowered to 1, the most this model takes')
  // At 1 each of the two changes nothing, and there are models that refuse them together.
  const mustChoose =
    family.sampling === 'one' && temperature !== undefined && topP !== undefined && topP.value !== 1
  const choosesTopP = mustChoose && temperature.value >= MAX_TEMPERATURE
  if (mustChoose && !choosesTopP) dropped.add(topP.field, 'not together with temperature for this model')
  const sendsTopP =
    topP !== undefined && (mustChoose ? choosesTopP : !(topP.value === 1 && temperature !== undefined))
  const sendsTemperature = temperature !== undefined && !choosesTopP
  return {
    ...(sendsTemperature ? { temperature: Math.min(temperature.value, MAX_TEMPERATURE) } : {}),
    ...(sendsTopP ? { top_p: topP.value } : {}),
    ...(topK === undefined ? {} : { top_k: topK.value }),
  }
}

function stopSequences({ stop }: ConversationSettings, dropped: DroppedFields): object {
  if (stop === undefined) return {}
  const sent = stop.value.filter((sequence) => sequence.trim() !== '')
  if (sent.length === 0) dropped.add(stop.field, 'blank sequences')
  else if (sent.length < stop.value.length) dropped.change(stop.field, 'without its blank sequences')
  return sent.length === 0 ? {} : { stop_sequences: sent }
}

/** Returns the metadata: the protocol has one id of the client's user. */
function metadata({ user, metadata: more }: ConversationSettings, dropped: DroppedFields): object {
  if (more !== undefined) {
    if (user === undefined) dropped.add(more.field)
    else dropped.change(more.field, 'only user_id')
  }
  if (user === undefined) return {}
  if (user.value.length <= MAX_USER_ID_CHARS) return { metadata: { user_id: user.value } }
  dropped.add(user.field, 'longer than 256 characters')
  return {}
}
