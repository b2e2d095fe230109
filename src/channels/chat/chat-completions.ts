/** Adapter for upstreams of the chat-completions protocol. */
import { baseFor, type ChannelAdapter, commonHeaders, keyFields, versioned } from '../channel.ts'
import { rewritten } from '../quirks.ts'

const PROTOCOL = 'chat-completions'
const PATH = '/chat/completions'

export const chatCompletionsChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    base: baseFor(channel, PROTOCOL),
    path: versioned(channel, PROTOCOL, PATH),
    headers: [...keyFields(channel, 'authorization'), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}

/** The same for upstreams that refuse what others take. */
export const quirkyChatCompletionsChannel: ChannelAdapter = {
  ...chatCompletionsChannel,
  body: (body, { quirks }) => rewritten(body, quirks),
}
