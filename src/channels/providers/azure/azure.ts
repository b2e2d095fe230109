/**
 * Azure OpenAI. A base URL that ends in `/openai/v1` names the deployment in the body, like other APIs; the older form,
 * which ends in `/openai`, names it in the path and needs an `api-version`.
 */
import type { ChannelEntry, ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { type ChannelAdapter, type ChannelCall, requestTo } from '../../channel.ts'
import type { ProviderPreset } from '../provider.ts'

export const azure: ProviderPreset = {
  title: 'Azure OpenAI',
  // Each resource has its own host.
  baseUrls: { 'chat-completions': () => null, responses: () => null },
  keyHeader: 'api-key',
  outputLimitField: 'max_completion_tokens',
  keepsResponsesDays: 30,
}

const OLDER_BASE = /\/openai$/

export const isOlderAzure = ({
  provider,
  base_url: base,
}: Pick<ChannelEntry, 'provider' | 'base_url'>): boolean => provider === 'azure' && OLDER_BASE.test(base)

const pathOf = (protocol: ChatProtocol, { upstreamModel }: ChannelCall): string =>
  protocol === 'responses'
    ? '/responses'
    : `/deployments/${encodeURIComponent(upstreamModel)}/chat/completions`

/** Returns the adapter of the older form. */
export const olderAzureChannel = (protocol: ChatProtocol): ChannelAdapter => ({
  variant: (call) => pathOf(protocol, call),
  request: (channel, call) => {
    const path = `${pathOf(protocol, call)}?api-version=${channel.api_version}`
    return requestTo(channel, channel.base_url, path, 'api-key')
  },
})
