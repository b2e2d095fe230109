/** Adapter for upstreams of the responses protocol. */
import { baseFor, bearer, type ChannelAdapter, commonHeaders, versioned } from '../channel.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

export const responsesChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    base: baseFor(channel, PROTOCOL),
    path: versioned(channel, PROTOCOL, PATH),
    headers: [bearer(channel), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
