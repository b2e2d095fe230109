/** Adapter for upstreams of the responses protocol. */
import { baseFor, type ChannelAdapter, commonHeaders, keyFields, versioned } from '../channel.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

export const responsesChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) => ({
    method: 'POST',
    base: baseFor(channel, PROTOCOL),
    path: versioned(channel, PROTOCOL, PATH),
    headers: [...keyFields(channel, 'authorization'), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
