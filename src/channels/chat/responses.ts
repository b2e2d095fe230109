/** Adapter for upstreams of the responses protocol. */
import { baseFor, type ChannelAdapter, requestTo, versioned } from '../channel.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

export const responsesChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) =>
    requestTo(channel, baseFor(channel, PROTOCOL), versioned(channel, PROTOCOL, PATH), 'authorization'),
}
