/** The providers as a table, and how a channel is filled with the preset of its provider. See docs/extending.md. */
import { CHAT_PROTOCOLS, type ChannelEntry, chatProtocol } from '../../../schemas/config/catalog.ts'
import { withOneFormOfKeys } from '../../core/routing/channel-access.ts'
import { type ChannelFields, listProtocols, type Provider, type VendorTools } from './provider.ts'
import * as registry from './registry.ts'
import { fillServerTools } from './server-tools.ts'

export const PROVIDERS: Readonly<Record<string, Provider>> = registry

/** The providers that a channel can name. */
export const PRESETS: Readonly<Record<string, Provider>> = Object.fromEntries(
  Object.entries(PROVIDERS).filter(([, provider]) => listProtocols(provider).length > 0),
)

/** The names of all quirks. */
export const QUIRKS: readonly string[] = Object.values(PROVIDERS).flatMap(({ quirks = {} }) =>
  Object.keys(quirks),
)

/** Returns the provider of this name; undefined without one. */
export const findProvider = (name: unknown): Provider | undefined =>
  typeof name === 'string' && Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined

const isFields = (value: unknown): value is ChannelFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The fields that a preset may fill besides `protocol`. */
type PresetFields = Partial<
  Pick<
    ChannelEntry,
    | 'base_url'
    | 'key_header'
    | 'keeps_responses_days'
    | 'keeps_conversations'
    | 'output_limit_field'
    | 'quirks'
  >
>

/** Returns the fields that the preset has for a channel of this protocol; `fields` are the channel's own. */
export function fillPresetFields(preset: Provider, protocol: unknown, fields: ChannelFields): PresetFields {
  const known = listProtocols(preset).find((name) => name === protocol)
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
      ...(preset.quirks !== undefined && { quirks: Object.keys(preset.quirks) }),
    }),
  }
}

/** Returns a channel with the fields of its provider's preset in place of those that it leaves out. */
function fillChannel(channel: unknown): unknown {
  const preset = isFields(channel) ? findProvider(channel.provider) : undefined
  if (!isFields(channel) || preset === undefined) return channel
  const { protocol = listProtocols(preset)[0] } = channel
  return { protocol, ...fillPresetFields(preset, protocol, channel), ...channel }
}

/** Returns the tools that the provider of a channel runs in its protocol; undefined without any. */
export function findVendorTools({ provider, protocol }: ChannelFields): VendorTools | undefined {
  const { data: known } = chatProtocol.safeParse(protocol)
  return known === undefined ? undefined : findProvider(provider)?.serverTools?.[known]
}

/**
 * Returns the values of a configuration file with its channels filled by their presets, their keys in one form, and the
 * tools of their vendors.
 */
export function withPresets(value: unknown): unknown {
  if (!isFields(value) || !Array.isArray(value.channels)) return value
  const channels = value.channels.map((channel) => fillChannel(withOneFormOfKeys(channel)))
  return fillServerTools({ ...value, channels }, (channel) =>
    channel.tools === undefined ? findVendorTools(channel) : undefined,
  )
}
