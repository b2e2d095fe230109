/** Adapter for upstreams of the responses protocol. */
import {
  addVersion,
  buildRequest,
  type ChannelAdapter,
  type CountingAdapter,
  chooseBase,
} from '../channel.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

const channelAt = (path: string): ChannelAdapter => ({
  variant: () => path,
  request: (channel) =>
    buildRequest(
      channel,
      chooseBase(channel, PROTOCOL),
      addVersion(channel, PROTOCOL, path),
      'authorization',
    ),
})

export const responsesChannel = channelAt(PATH)

/** `POST /v1/responses/input_tokens` of a native upstream. */
export const countResponsesChannel: CountingAdapter = {
  ...channelAt(`${PATH}/input_tokens`),
  countField: 'input_tokens',
}
