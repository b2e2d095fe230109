/** Adapters of endpoints whose requests pass to the same path of a channel of the chat-completions protocol. */
import type { PassedEndpoint } from '../../../schemas/config/catalog.ts'
import { buildRequest, type ChannelAdapter } from '../channel.ts'

/** Paths behind the version. */
export const PASSED_PATHS: Readonly<Record<PassedEndpoint, string>> = {
  embeddings: '/embeddings',
  rerank: '/rerank',
}

const channelAt = (path: string): ChannelAdapter => ({
  variant: () => path,
  request: (channel) => buildRequest(channel, channel.base_url, path, 'authorization'),
})

export const passedChannels: Readonly<Record<PassedEndpoint, ChannelAdapter>> = {
  embeddings: channelAt(PASSED_PATHS.embeddings),
  rerank: channelAt(PASSED_PATHS.rerank),
}
