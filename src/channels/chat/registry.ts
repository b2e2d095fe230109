/** Every chat channel adapter by its protocol. */
import type { ChannelEntry, ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { ChannelAdapter } from '../channel.ts'
import { chatCompletionsChannel, quirkyChatCompletionsChannel } from './chat-completions.ts'
import { generateContentChannel, generateContentCountChannel } from './generate-content.ts'
import { countTokensChannel, messagesChannel } from './messages.ts'
import { responsesChannel } from './responses.ts'

export const CHANNEL_ADAPTERS: Readonly<Record<ChatProtocol, ChannelAdapter>> = {
  'chat-completions': chatCompletionsChannel,
  messages: messagesChannel,
  'generate-content': generateContentChannel,
  responses: responsesChannel,
}

/** Returns the adapter to a channel's upstream. */
export const chatAdapterOf = ({ quirks }: ChannelEntry, protocol: ChatProtocol): ChannelAdapter =>
  quirks.length > 0 && protocol === 'chat-completions'
    ? quirkyChatCompletionsChannel
    : CHANNEL_ADAPTERS[protocol]

/** By the protocols that have a way to count tokens. */
export const COUNTING_ADAPTERS = {
  messages: countTokensChannel,
  'generate-content': generateContentCountChannel,
} as const satisfies Readonly<Partial<Record<ChatProtocol, ChannelAdapter>>>
export type CountingProtocol = keyof typeof COUNTING_ADAPTERS
