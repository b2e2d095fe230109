/** Adapters of the endpoints that count the tokens of a request without running it. */
import type { ChannelEntry, Provider } from '../../../schemas/config/catalog.ts'
import type { ChannelAdapter } from '../channel.ts'
import { bedrockCountChannel } from '../providers/bedrock/bedrock.ts'
import { vertexCountChannel, vertexMessagesCountChannel } from '../providers/vertex/vertex.ts'
import { generateContentCountChannel } from './generate-content.ts'
import { countTokensChannel } from './messages.ts'

/** The protocols that have a way to count tokens. */
export type CountingProtocol = 'messages' | 'generate-content'

export interface CountingAdapter extends ChannelAdapter {
  /** Field of the upstream's answer with the count. */
  readonly countField: string
}

const ADAPTERS: Readonly<Record<CountingProtocol, CountingAdapter>> = {
  messages: { ...countTokensChannel, countField: 'input_tokens' },
  'generate-content': { ...generateContentCountChannel, countField: 'totalTokens' },
}

/** Platforms whose path names the model count elsewhere. */
const PLATFORMS: Partial<Record<Provider, Partial<Record<CountingProtocol, CountingAdapter>>>> = {
  bedrock: { messages: { ...bedrockCountChannel, countField: 'inputTokens' } },
  vertex: {
    messages: { ...vertexMessagesCountChannel, countField: 'input_tokens' },
    'generate-content': { ...vertexCountChannel, countField: 'totalTokens' },
  },
}

/** Returns the adapter that counts at a channel of the client's own protocol; null for any other channel. */
export function countingAdapterOf(channel: ChannelEntry, protocol: CountingProtocol): CountingAdapter | null {
  if (channel.protocol !== protocol) return null
  const ofPlatform = channel.provider === undefined ? undefined : PLATFORMS[channel.provider]?.[protocol]
  return ofPlatform ?? ADAPTERS[protocol]
}
