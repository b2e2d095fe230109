/** Amazon Bedrock: the messages protocol by InvokeModel. The path names the model, and the body a version. */
import { Buffer } from 'node:buffer'
import { NO_USAGE, type TokenUsage } from '../../../core/pricing/usage.ts'
import { buildRequest, type ChannelAdapter, type ChannelCall, type CountingAdapter } from '../../channel.ts'
import { FEATURES_HEADER, moveModelToPath } from '../../chat/messages.ts'
import type { ChannelFields, Provider } from '../provider.ts'

const VERSION = 'bedrock-2023-05-31'

function baseUrl({ auth }: ChannelFields): string | null {
  const { region } = (auth ?? {}) as { region?: unknown }
  return typeof region === 'string' && region !== ''
    ? `https://bedrock-runtime.${region}.amazonaws.com`
    : null
}

const adapter = (makePath: (call: ChannelCall) => string): ChannelAdapter => ({
  variant: makePath,
  request: (channel, call) =>
    buildRequest(channel, channel.base_url, `/model/${makePath(call)}`, 'authorization'),
})

type HeaderOf = (name: string) => string

function makeInvokeBody(
  body: Buffer,
  header: HeaderOf,
  fields: Readonly<Record<string, unknown>> = {},
): Buffer {
  const features = header(FEATURES_HEADER)
  return moveModelToPath(body, ['model', 'stream'], {
    anthropic_version: VERSION,
    ...(features !== '' && { anthropic_beta: features.split(',').map((name) => name.trim()) }),
    ...fields,
  })
}

const invoke: ChannelAdapter = {
  ...adapter(
    ({ upstreamModel, stream }) =>
      `${encodeURIComponent(upstreamModel)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
  ),
  body: (body, _channel, _call, header) => makeInvokeBody(body, header),
}

/** Geography of an inference profile. Tokens are counted for the model without it. */
const GEOGRAPHY = /^(?:global|us-gov|[a-z]{2,5})\.(?=[a-z]+\.)/
/** InvokeModel demands a limit, which a request to count has none of. It changes no count. */
const ANY_LIMIT = { max_tokens: 1 }

/** CountTokens: it takes the body of an InvokeModel request in base64. */
const count: CountingAdapter = {
  countField: 'inputTokens',
  ...adapter(
    ({ upstreamModel }) => `${encodeURIComponent(upstreamModel.replace(GEOGRAPHY, ''))}/count-tokens`,
  ),
  body(body, _channel, _call, header) {
    const invoked = makeInvokeBody(body, header, ANY_LIMIT).toString('base64')
    return Buffer.from(JSON.stringify({ input: { invokeModel: { body: invoked } } }))
  },
}

/** Reads the usage that it reports in headers, for an answer whose body has none. */
function readHeaderUsage(header: (name: string) => string | undefined): TokenUsage | null {
  const count = (name: string): number => {
    const text = header(`x-amzn-bedrock-${name}-token-count`) ?? ''
    return /^\d{1,12}$/.test(text) ? Number(text) : -1
  }
  const [input, output] = [count('input'), count('output')]
  if (input < 0 || output < 0) return null
  const cached = Math.max(0, count('cache-read-input'))
  const cacheWrite = Math.max(0, count('cache-write-input'))
  // The protocol counts cached tokens apart from its input.
  return { ...NO_USAGE, prompt: input + cached + cacheWrite, output, cached, cacheWrite }
}

export const bedrock: Provider = {
  title: 'Amazon Bedrock',
  baseUrls: { messages: baseUrl },
  keyHeader: 'authorization',
  listedAs: ['bedrock', 'amazon-bedrock'],
  chatAdapter: (_channel, protocol) => (protocol === 'messages' ? invoke : undefined),
  countingAdapters: { messages: count },
  fetchesNothing: true,
  readHeaderUsage,
}
