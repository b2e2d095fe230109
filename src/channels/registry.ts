/** Every chat channel adapter by the protocol that it speaks. */
import type { ChatProtocol } from '../../schemas/catalog.ts'
import type { ChannelAdapter } from './channel.ts'
import { chatCompletionsChannel } from './chat-completions.ts'
import { generateContentChannel } from './generate-content.ts'
import { messagesChannel } from './messages.ts'
import { responsesChannel } from './responses.ts'

export const CHANNEL_ADAPTERS: Readonly<Record<ChatProtocol, ChannelAdapter>> = {
  'chat-completions': chatCompletionsChannel,
  messages: messagesChannel,
  'generate-content': generateContentChannel,
  responses: responsesChannel,
}
