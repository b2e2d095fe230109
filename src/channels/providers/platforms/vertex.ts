/**
 * Vertex AI: generate-content, and the messages protocol by rawPredict, below the path of a project and a location. The
 * path names the model.
 */
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { type ChannelAdapter, type ChannelCall, commonHeaders, keyFields } from '../../channel.ts'
import { FEATURES_HEADER } from '../../chat/messages.ts'
import type { ProviderPreset } from '../provider.ts'
import { modelInPath } from './model-in-path.ts'

const VERSION = 'vertex-2023-10-16'

export const vertex: ProviderPreset = {
  title: 'Vertex AI',
  // Each project and location has its own path.
  baseUrls: { 'generate-content': () => null, messages: () => null },
}

/** The form of its base URLs. */
export const VERTEX_BASE = /\/v1(beta1)?\/projects\/[^/]+\/locations\/[^/]+$/

const adapter = (pathOf: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: pathOf,
  request: (channel, call) => ({
    method: 'POST',
    base: channel.base_url,
    path: pathOf(call),
    headers: [...keyFields(channel, 'x-goog-api-key'), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
})

const modelPath = (publisher: string, { upstreamModel }: ChannelCall, method: string): string =>
  `/publishers/${publisher}/models/${encodeURIComponent(upstreamModel)}:${method}`

const isEventStream = (query: string): boolean => new URLSearchParams(query).get('alt') === 'sse'

const generate = adapter((call) => {
  if (!call.stream) return modelPath('google', call, 'generateContent')
  return modelPath('google', call, 'streamGenerateContent') + (isEventStream(call.query) ? '?alt=sse' : '')
})

const messages: ChannelAdapter = {
  ...adapter((call) => modelPath('anthropic', call, call.stream ? 'streamRawPredict' : 'rawPredict')),
  callHeaders: (header) => {
    const features = header(FEATURES_HEADER)
    return features === '' ? [] : [[FEATURES_HEADER, features]]
  },
  body: (body) => modelInPath(body, ['model'], { anthropic_version: VERSION }),
}

export const VERTEX_CHANNELS: Readonly<Partial<Record<ChatProtocol, ChannelAdapter>>> = {
  'generate-content': generate,
  messages,
}
