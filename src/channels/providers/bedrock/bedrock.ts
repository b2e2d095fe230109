/** Amazon Bedrock: the messages protocol by InvokeModel. The path names the model, and the body a version. */
import { Buffer } from 'node:buffer'
import { type ChannelAdapter, type ChannelCall, requestTo } from '../../channel.ts'
import { FEATURES_HEADER } from '../../chat/messages.ts'
import { modelInPath } from '../../chat/model-in-path.ts'
import type { ChannelFields, ProviderPreset } from '../provider.ts'

const VERSION = 'bedrock-2023-05-31'

function baseUrl({ auth }: ChannelFields): string | null {
  const { region } = (auth ?? {}) as { region?: unknown }
  return typeof region === 'string' && region !== ''
    ? `https://bedrock-runtime.${region}.amazonaws.com`
    : null
}

export const bedrock: ProviderPreset = {
  title: 'Amazon Bedrock',
  baseUrls: { messages: baseUrl },
  keyHeader: 'authorization',
}

const adapter = (pathOf: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: pathOf,
  request: (channel, call) => requestTo(channel, channel.base_url, `/model/${pathOf(call)}`, 'authorization'),
})

type HeaderOf = (name: string) => string

function invokeBody(body: Buffer, header: HeaderOf, fields: Readonly<Record<string, unknown>> = {}): Buffer {
  const features = header(FEATURES_HEADER)
  return modelInPath(body, ['model', 'stream'], {
    anthropic_version: VERSION,
    ...(features !== '' && { anthropic_beta: features.split(',').map((name) => name.trim()) }),
    ...fields,
  })
}

export const bedrockChannel: ChannelAdapter = {
  ...adapter(
    ({ upstreamModel, stream }) =>
      `${encodeURIComponent(upstreamModel)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
  ),
  body: (body, _channel, _call, header) => invokeBody(body, header),
}

/** Geography of an inference profile. Tokens are counted for the model alone. */
const GEOGRAPHY = /^(?:global|us-gov|[a-z]{2,5})\.(?=[a-z]+\.)/
/** InvokeModel demands a limit, which a request to count has none of. It changes no count. */
const ANY_LIMIT = { max_tokens: 1 }

/** CountTokens: it takes the body of an InvokeModel request in base64. */
export const bedrockCountChannel: ChannelAdapter = {
  ...adapter(
    ({ upstreamModel }) => `${encodeURIComponent(upstreamModel.replace(GEOGRAPHY, ''))}/count-tokens`,
  ),
  body(body, _channel, _call, header) {
    const invoked = invokeBody(body, header, ANY_LIMIT).toString('base64')
    return Buffer.from(JSON.stringify({ input: { invokeModel: { body: invoked } } }))
  },
}
