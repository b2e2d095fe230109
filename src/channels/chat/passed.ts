/** Adapters of endpoints whose requests pass to the same path of a channel of the chat-completions protocol. */
import { randomUUID } from 'node:crypto'
import type { PassedEndpoint } from '../../../schemas/config/catalog.ts'
import { buildRequest, type ChannelAdapter } from '../channel.ts'

/** Paths behind the version. */
export const PASSED_PATHS: Readonly<Record<PassedEndpoint, string>> = {
  embeddings: '/embeddings',
  rerank: '/rerank',
  audio_transcriptions: '/audio/transcriptions',
}

/** Between the parts of forms. No client knows it, so that no file has it. */
export const FORM_BOUNDARY = `tollgate-${randomUUID()}`
const FORM_TYPE = `multipart/form-data; boundary=${FORM_BOUNDARY}`

/** Returns the content type of requests; undefined: JSON. */
export const findFormType = (protocol: string): string | undefined =>
  protocol === 'audio_transcriptions' ? FORM_TYPE : undefined

const channelAt = (endpoint: PassedEndpoint): ChannelAdapter => ({
  variant: () => endpoint,
  request: (channel) =>
    buildRequest(channel, channel.base_url, PASSED_PATHS[endpoint], 'authorization', findFormType(endpoint)),
})

export const passedChannels: Readonly<Record<PassedEndpoint, ChannelAdapter>> = {
  embeddings: channelAt('embeddings'),
  rerank: channelAt('rerank'),
  audio_transcriptions: channelAt('audio_transcriptions'),
}
