/** Adapter for upstreams of the chat-completions protocol. */
import { baseFor, type ChannelAdapter, requestTo, versioned } from '../channel.ts'
import { rewritten } from '../quirks.ts'

const PROTOCOL = 'chat-completions'
const PATH = '/chat/completions'

export const chatCompletionsChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) =>
    requestTo(channel, baseFor(channel, PROTOCOL), versioned(channel, PROTOCOL, PATH), 'authorization'),
}

/** The same for upstreams that refuse what others take. */
export const quirkyChatCompletionsChannel: ChannelAdapter = {
  ...chatCompletionsChannel,
  body: (body, { quirks }) => rewritten(body, quirks),
}
