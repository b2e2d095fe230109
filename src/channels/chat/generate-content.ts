/** Adapter for upstreams of the generate-content protocol: model, method and framing are in the URL. */
import { resourceName } from '../../core/routing/generate-model-name.ts'
import { baseFor, type ChannelAdapter, type ChannelCall, commonHeaders, keyFields } from '../channel.ts'

const isEventStream = (query: string): boolean => new URLSearchParams(query).get('alt') === 'sse'

const pathTo = (upstreamModel: string, method: string): string =>
  `/v1beta/${resourceName(upstreamModel).split('/').map(encodeURIComponent).join('/')}:${method}`

function generatePath({ upstreamModel, stream, query }: ChannelCall): string {
  if (!stream) return pathTo(upstreamModel, 'generateContent')
  return pathTo(upstreamModel, 'streamGenerateContent') + (isEventStream(query) ? '?alt=sse' : '')
}

const adapter = (pathOf: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: pathOf,
  request: (channel, call) => ({
    method: 'POST',
    base: baseFor(channel, 'generate-content'),
    path: pathOf(call),
    headers: [...keyFields(channel, 'x-goog-api-key'), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
})

export const generateContentChannel: ChannelAdapter = adapter(generatePath)
/** Counts the tokens of a request without running it. */
export const generateContentCountChannel: ChannelAdapter = adapter(({ upstreamModel }) =>
  pathTo(upstreamModel, 'countTokens'),
)
