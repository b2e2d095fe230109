/** Amazon Bedrock: the messages protocol by InvokeModel. The path names the model, and the body a version. */
import type { Buffer } from 'node:buffer'
import { type ChannelAdapter, commonHeaders, keyFields } from '../../channel.ts'
import { FEATURES_HEADER } from '../../chat/messages.ts'
import type { ChannelFields, ProviderPreset } from '../provider.ts'
import { modelInPath } from './model-in-path.ts'

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

export const bedrockChannel: ChannelAdapter = {
  variant: ({ upstreamModel, stream }) => `${upstreamModel} ${stream}`,
  request: (channel, { upstreamModel, stream }) => ({
    method: 'POST',
    base: channel.base_url,
    path: `/model/${encodeURIComponent(upstreamModel)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
    headers: [...keyFields(channel, 'authorization'), ...commonHeaders(channel)],
  }),
  callHeaders: () => [],
  body: (body: Buffer, _channel, _call, header) => {
    const features = header(FEATURES_HEADER)
    return modelInPath(body, ['model', 'stream'], {
      anthropic_version: VERSION,
      ...(features !== '' && { anthropic_beta: features.split(',').map((name) => name.trim()) }),
    })
  },
}
