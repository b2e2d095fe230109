/** Upstreams that speak the responses protocol. Source: operator, "Configuration file", on `base_url`. */
import { bearer, type ChannelAdapter, commonHeaders, versioned } from './channel.ts'

const PATH = '/responses'

export const responsesChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    path: channel.protocol === 'responses' ? PATH : versioned(channel, PATH),
    headers: [bearer(channel), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
