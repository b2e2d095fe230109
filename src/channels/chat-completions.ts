/** Upstreams that speak the chat-completions protocol. Source: operator, "Configuration file", on `base_url`. */
import { bearer, type ChannelAdapter, commonHeaders, versioned } from './channel.ts'

const PATH = '/chat/completions'

export const chatCompletionsChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    path: channel.protocol === 'chat-completions' ? PATH : versioned(channel, PATH),
    headers: [bearer(channel), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
