/** Upstreams that speak the generate-content protocol: model, method and framing stand in the URL. */
import { baseFor, type ChannelAdapter, type ChannelCall, commonHeaders } from './channel.ts'

/** Collections of an upstream other than `models`. */
const NAMED_COLLECTION = /^(models|tunedModels)\//

const isEventStream = (query: string): boolean => new URLSearchParams(query).get('alt') === 'sse'

function pathOf({ upstreamModel, stream, query }: ChannelCall): string {
  const name = NAMED_COLLECTION.test(upstreamModel) ? upstreamModel : `models/${upstreamModel}`
  const escaped = name.split('/').map(encodeURIComponent).join('/')
  if (!stream) return `/v1beta/${escaped}:generateContent`
  return `/v1beta/${escaped}:streamGenerateContent${isEventStream(query) ? '?alt=sse' : ''}`
}

export const generateContentChannel: ChannelAdapter = {
  variant: pathOf,
  request: (channel, call) => ({
    method: 'POST',
    base: baseFor(channel, 'generate-content'),
    path: pathOf(call),
    headers: [['x-goog-api-key', channel.api_key], ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
}
