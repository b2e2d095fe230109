/**
 * Azure OpenAI. A base URL that ends in `/openai/v1` names the deployment in the body, like other APIs; the older form,
 * which ends in `/openai`, names it in the path and needs an `api-version`.
 */
import type { CallProtocol, ChannelEntry } from '../../../../schemas/config/catalog.ts'
import { buildRequest, type ChannelAdapter, type ChannelCall } from '../../channel.ts'
import { findFormType, PASSED_PATHS } from '../../chat/passed.ts'
import type { Provider } from '../provider.ts'

const OLDER_BASE = /\/openai$/

const isOlder = ({ base_url }: Pick<ChannelEntry, 'base_url'>): boolean => OLDER_BASE.test(base_url)

/** Paths below a deployment. */
const PATHS = { 'chat-completions': '/chat/completions', ...PASSED_PATHS } as const
type DeploymentProtocol = keyof typeof PATHS

const buildPath = (protocol: DeploymentProtocol | 'responses', { upstreamModel }: ChannelCall): string =>
  protocol === 'responses'
    ? '/responses'
    : `/deployments/${encodeURIComponent(upstreamModel)}${PATHS[protocol]}`

/** Returns the adapter of the older form. */
const olderAdapter = (protocol: DeploymentProtocol | 'responses'): ChannelAdapter => ({
  variant: (call) => buildPath(protocol, call),
  request: (channel, call) => {
    const path = `${buildPath(protocol, call)}?api-version=${channel.api_version}`
    return buildRequest(channel, channel.base_url, path, 'api-key', findFormType(protocol))
  },
})

const OLDER_ADAPTERS: Readonly<Partial<Record<CallProtocol, ChannelAdapter>>> = {
  'chat-completions': olderAdapter('chat-completions'),
  responses: olderAdapter('responses'),
  embeddings: olderAdapter('embeddings'),
  rerank: olderAdapter('rerank'),
  audio_transcriptions: olderAdapter('audio_transcriptions'),
}

export const azure: Provider = {
  title: 'Azure OpenAI',
  // Each resource has its own host.
  baseUrls: { 'chat-completions': () => null, responses: () => null },
  keyHeader: 'api-key',
  outputLimitField: 'max_completion_tokens',
  keepsResponsesDays: 30,
  checkBaseUrl(channel) {
    if (!isOlder(channel)) return null
    const message = 'is required with this form of base_url, such as 2024-10-21.'
    return channel.api_version === undefined ? [{ field: 'api_version', message }] : []
  },
  chatAdapter: (channel, protocol) => (isOlder(channel) ? OLDER_ADAPTERS[protocol] : undefined),
  storedQuery: (channel) => (isOlder(channel) ? `api-version=${channel.api_version}` : ''),
  routingFields: ['data_sources', 'dataSources'],
}
