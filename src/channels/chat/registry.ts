/** The adapter to the upstream of a chat channel: its provider's own, or that of its protocol. */
import type { CallProtocol, ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { ChannelAdapter, CountingAdapter, CountingProtocol } from '../channel.ts'
import { findProvider } from '../providers/presets.ts'
import { chatCompletionsChannel, quirkyChatCompletionsChannel } from './chat-completions.ts'
import { generateContentChannel, generateContentCountChannel } from './generate-content.ts'
import { countTokensChannel, messagesChannel } from './messages.ts'
import { passedChannels } from './passed.ts'
import { countResponsesChannel, responsesChannel } from './responses.ts'

const CHANNEL_ADAPTERS: Readonly<Record<CallProtocol, ChannelAdapter>> = {
  ...passedChannels,
  'chat-completions': chatCompletionsChannel,
  messages: messagesChannel,
  'generate-content': generateContentChannel,
  responses: responsesChannel,
}

const COUNTING_ADAPTERS: Readonly<Record<CountingProtocol, CountingAdapter>> = {
  messages: countTokensChannel,
  'generate-content': generateContentCountChannel,
  responses: countResponsesChannel,
}

const COMPACT = '/compact'

/** Returns the adapter to a channel's upstream. */
export function findChatAdapter(channel: ChannelEntry, protocol: CallProtocol): ChannelAdapter {
  const own = findProvider(channel.provider)?.chatAdapter?.(channel, protocol)
  if (own !== undefined) return own
  return channel.quirks.length > 0 && protocol === 'chat-completions'
    ? quirkyChatCompletionsChannel
    : CHANNEL_ADAPTERS[protocol]
}

/** Returns the adapter to the endpoint that compacts conversations, of a channel of the responses protocol. */
export function findCompactingAdapter(channel: ChannelEntry): ChannelAdapter {
  const adapter = findChatAdapter(channel, 'responses')
  return {
    ...adapter,
    variant: (call) => adapter.variant(call) + COMPACT,
    request(entry, call) {
      const request = adapter.request(entry, call)
      return { ...request, path: request.path.replace(/(?=\?|$)/, COMPACT) }
    },
  }
}

/** Returns the adapter that counts at a channel of the client's own protocol; null for any other channel. */
export function findCountingAdapter(
  channel: ChannelEntry,
  protocol: CountingProtocol,
): CountingAdapter | null {
  if (channel.protocol !== protocol) return null
  return findProvider(channel.provider)?.countingAdapters?.[protocol] ?? COUNTING_ADAPTERS[protocol]
}
