/**
 * Vertex AI: generate-content, the messages protocol by rawPredict, and videos by Veo, below the path of a project and a
 * location. The path names the model.
 */
import { Buffer } from 'node:buffer'
import type { CallProtocol } from '../../../../schemas/config/catalog.ts'
import { parseRawJson } from '../../../core/json/exact.ts'
import { buildRequest, type ChannelAdapter, type ChannelCall, type CountingAdapter } from '../../channel.ts'
import { generateMethod } from '../../chat/generate-content.ts'
import { FEATURES_HEADER, moveModelToPath } from '../../chat/messages.ts'
import type { Provider } from '../provider.ts'

const VERSION = 'vertex-2023-10-16'

/** The form of its base URLs. */
const BASE_URL = /\/v1(beta1)?\/projects\/[^/]+\/locations\/[^/]+$/

const adapter = (makePath: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: makePath,
  request: (channel, call) => buildRequest(channel, channel.base_url, makePath(call), 'x-goog-api-key'),
})

const makeModelPath = (publisher: string, { upstreamModel }: ChannelCall, method: string): string =>
  `/publishers/${publisher}/models/${encodeURIComponent(upstreamModel)}:${method}`

const generate = adapter((call) => makeModelPath('google', call, generateMethod(call)))

const WHOLE_REQUESTS = ['generateContentRequest', 'generate_content_request']
/** The fields of a whole request that are counted; the interface knows no others. */
const COUNTED_FIELDS: ReadonlySet<string> = new Set([
  'contents',
  'systemInstruction',
  'system_instruction',
  'tools',
  'generationConfig',
  'generation_config',
])

/** Returns the fields of a whole request without the field around them, which this interface does not have. */
function keepCountedFields(body: Buffer): Buffer {
  const request = parseRawJson(body.toString('utf8')) as Record<string, unknown>
  const whole = WHOLE_REQUESTS.map((name) => request[name]).find((fields) => fields != null)
  if (whole === undefined) return body
  const kept = Object.entries(whole as object).filter(([name]) => COUNTED_FIELDS.has(name))
  return Buffer.from(JSON.stringify(Object.fromEntries(kept)))
}

const messages: ChannelAdapter = {
  ...adapter((call) => makeModelPath('anthropic', call, call.stream ? 'streamRawPredict' : 'rawPredict')),
  callHeaders: (header) => {
    const features = header(FEATURES_HEADER)
    return features === '' ? [] : [[FEATURES_HEADER, features]]
  },
  body: (body) => moveModelToPath(body, ['model'], { anthropic_version: VERSION }),
}

/** Counts the tokens of a request of the messages protocol: its path names a counter in place of the model. */
const countMessages: CountingAdapter = {
  countField: 'input_tokens',
  ...adapter((call) => makeModelPath('anthropic', { ...call, upstreamModel: 'count-tokens' }, 'rawPredict')),
  callHeaders: messages.callHeaders,
  body: (body) => moveModelToPath(body, [], { anthropic_version: VERSION }),
}

/** Counts the tokens of a request of the generate-content protocol. */
const countGenerate: CountingAdapter = {
  countField: 'totalTokens',
  ...adapter((call) => makeModelPath('google', call, 'countTokens')),
  body: keepCountedFields,
}

const ADAPTERS: Readonly<Partial<Record<CallProtocol, ChannelAdapter>>> = {
  'generate-content': generate,
  messages,
}

export const vertex: Provider = {
  title: 'Vertex AI',
  // Each project and location has its own path. Videos are made by the adapter of the Gemini API.
  baseUrls: { 'generate-content': () => null, messages: () => null, veo: () => null },
  checkBaseUrl({ base_url }) {
    const message = 'must end in /v1/projects/PROJECT/locations/LOCATION.'
    return BASE_URL.test(base_url) ? null : [{ field: 'base_url', message }]
  },
  storageProtocol: 'veo',
  listedAs: ['vertex_ai', 'google-vertex'],
  chatAdapter: (_channel, protocol) => ADAPTERS[protocol],
  countingAdapters: { messages: countMessages, 'generate-content': countGenerate },
  fetchesNothing: true,
  lacksToolInvocations: true,
}
