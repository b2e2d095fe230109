/** Adapter for upstreams of the generate-content protocol: model, method and framing are in the URL. */
import { resourceName } from '../../core/routing/generate-model-name.ts'
import {
  buildRequest,
  type ChannelAdapter,
  type ChannelCall,
  type CountingAdapter,
  chooseBase,
} from '../channel.ts'

const isEventStream = (query: string): boolean => new URLSearchParams(query).get('alt') === 'sse'

const pathTo = (upstreamModel: string, method: string): string =>
  `/v1beta/${resourceName(upstreamModel).split('/').map(encodeURIComponent).join('/')}:${method}`

/** Returns the method of a call, and the framing of its stream behind it. */
export function generateMethod({ stream, query }: ChannelCall): string {
  if (!stream) return 'generateContent'
  return isEventStream(query) ? 'streamGenerateContent?alt=sse' : 'streamGenerateContent'
}

const adapter = (makePath: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: makePath,
  request: (channel, call) =>
    buildRequest(channel, chooseBase(channel, 'generate-content'), makePath(call), 'x-goog-api-key'),
})

export const generateContentChannel: ChannelAdapter = adapter((call) =>
  pathTo(call.upstreamModel, generateMethod(call)),
)
/** Counts the tokens of a request without running it. */
export const generateContentCountChannel: CountingAdapter = {
  ...adapter(({ upstreamModel }) => pathTo(upstreamModel, 'countTokens')),
  countField: 'totalTokens',
}
