/** Every chat channel adapter by its protocol. */
import type { ChannelEntry, ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { ChannelAdapter } from '../channel.ts'
import { isOlderAzure, olderAzureChannel } from '../providers/azure/azure.ts'
import { bedrockChannel } from '../providers/bedrock/bedrock.ts'
import { VERTEX_CHANNELS } from '../providers/vertex/vertex.ts'
import { chatCompletionsChannel, quirkyChatCompletionsChannel } from './chat-completions.ts'
import { generateContentChannel } from './generate-content.ts'
import { messagesChannel } from './messages.ts'
import { responsesChannel } from './responses.ts'

const CHANNEL_ADAPTERS: Readonly<Record<ChatProtocol, ChannelAdapter>> = {
  'chat-completions': chatCompletionsChannel,
  messages: messagesChannel,
  'generate-content': generateContentChannel,
  responses: responsesChannel,
}

/** Returns the adapter to a channel's upstream. */
export function chatAdapterOf(channel: ChannelEntry, protocol: ChatProtocol): ChannelAdapter {
  if (channel.provider === 'bedrock' && protocol === 'messages') return bedrockChannel
  const ofVertex = channel.provider === 'vertex' ? VERTEX_CHANNELS[protocol] : undefined
  if (ofVertex !== undefined) return ofVertex
  const older = channel.provider === 'azure' ? OLDER_AZURE[protocol] : undefined
  if (older !== undefined && isOlderAzure(channel)) return older
  return channel.quirks.length > 0 && protocol === 'chat-completions'
    ? quirkyChatCompletionsChannel
    : CHANNEL_ADAPTERS[protocol]
}

const OLDER_AZURE: Readonly<Partial<Record<ChatProtocol, ChannelAdapter>>> = {
  'chat-completions': olderAzureChannel('chat-completions'),
  responses: olderAzureChannel('responses'),
}
