/** Adapter for upstreams of the responses protocol. */
import { addVersion, buildRequest, type ChannelAdapter, chooseBase } from '../channel.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

export const responsesChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) =>
    buildRequest(
      channel,
      chooseBase(channel, PROTOCOL),
      addVersion(channel, PROTOCOL, PATH),
      'authorization',
    ),
}
