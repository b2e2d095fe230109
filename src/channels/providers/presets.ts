/** Every preset by its provider, and how a channel is filled with it. See docs/extending.md. */
import { CHAT_PROTOCOLS, type ChannelEntry, type Provider } from '../../../schemas/config/catalog.ts'
import { withOneFormOfKeys } from '../../core/routing/channel-access.ts'
import { anthropic } from './anthropic/anthropic.ts'
import { ark } from './ark/ark.ts'
import { azure } from './azure/azure.ts'
import { bedrock } from './bedrock/bedrock.ts'
import { deepseek } from './deepseek/deepseek.ts'
import { gemini } from './gemini/gemini.ts'
import { groq } from './groq/groq.ts'
import { fal } from './media/fal.ts'
import { kling } from './media/kling.ts'
import { replicate } from './media/replicate.ts'
import { runway } from './media/runway.ts'
import { minimax } from './minimax/minimax.ts'
import { mistral } from './mistral/mistral.ts'
import { moonshot } from './moonshot/moonshot.ts'
import { openai } from './openai/openai.ts'
import { openrouter } from './openrouter/openrouter.ts'
import { type ChannelFields, type ProviderPreset, protocolsOf } from './provider.ts'
import { qwen } from './qwen/qwen.ts'
import { vertex } from './vertex/vertex.ts'
import { xai } from './xai/xai.ts'
import { zhipu } from './zhipu/zhipu.ts'

export const PRESETS: Readonly<Record<Provider, ProviderPreset>> = {
  openai,
  azure,
  anthropic,
  bedrock,
  vertex,
  gemini,
  deepseek,
  mistral,
  groq,
  xai,
  openrouter,
  moonshot,
  qwen,
  zhipu,
  minimax,
  ark,
  fal,
  replicate,
  kling,
  runway,
}

const isFields = (value: unknown): value is ChannelFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const presetOf = (name: unknown): ProviderPreset | undefined =>
  typeof name === 'string' && Object.hasOwn(PRESETS, name) ? PRESETS[name as Provider] : undefined

/** The fields that a preset may fill besides `protocol`. */
type PresetFields = Partial<
  Pick<
    ChannelEntry,
    'base_url' | 'key_header' | 'keeps_responses_days' | 'keeps_conversations' | 'output_limit_field'
  > & { readonly quirks: ProviderPreset['quirks'] }
>

/** Returns the fields that the preset has for a channel of this protocol; `fields` are the channel's own. */
export function presetFields(preset: ProviderPreset, protocol: unknown, fields: ChannelFields): PresetFields {
  const known = protocolsOf(preset).find((name) => name === protocol)
  const base = known === undefined ? undefined : preset.baseUrls[known]
  const url = typeof base === 'function' ? base(fields) : base
  const isChat = CHAT_PROTOCOLS.some((name) => name === protocol)
  return {
    ...(url != null && { base_url: url }),
    ...(isChat && preset.keyHeader !== undefined && { key_header: preset.keyHeader }),
    ...(protocol === 'responses' && {
      ...(preset.keepsResponsesDays !== undefined && { keeps_responses_days: preset.keepsResponsesDays }),
      ...(preset.keepsConversations && { keeps_conversations: true }),
    }),
    ...(protocol === 'chat-completions' && {
      ...(preset.outputLimitField !== undefined && { output_limit_field: preset.outputLimitField }),
      ...(preset.quirks !== undefined && { quirks: preset.quirks }),
    }),
  }
}

/** Returns a channel with the fields of its provider's preset in place of those that it leaves out. */
function filledChannel(channel: unknown): unknown {
  const preset = isFields(channel) ? presetOf(channel.provider) : undefined
  if (!isFields(channel) || preset === undefined) return channel
  const { protocol = protocolsOf(preset)[0] } = channel
  return { protocol, ...presetFields(preset, protocol, channel), ...channel }
}

/** Returns the values of a configuration file with its channels filled by their presets, and their keys in one form. */
export function withPresets(value: unknown): unknown {
  if (!isFields(value) || !Array.isArray(value.channels)) return value
  return { ...value, channels: value.channels.map((channel) => filledChannel(withOneFormOfKeys(channel))) }
}
