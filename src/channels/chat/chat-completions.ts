/** Adapter for upstreams of the chat-completions protocol. */
import { baseFor, bearer, type ChannelAdapter, commonHeaders, versioned } from '../channel.ts'

const PROTOCOL = 'chat-completions'
const PATH = '/chat/completions'

export const chatCompletionsChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    base: baseFor(channel, PROTOCOL),
    path: versioned(channel, PROTOCOL, PATH),
    headers: [bearer(channel), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
