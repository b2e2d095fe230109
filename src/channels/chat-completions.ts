/** Upstreams that speak the chat-completions protocol. Source: operator, "Configuration file", on `base_url`. */
import type { ChannelEntry } from '../../schemas/catalog.ts'

/** What never changes between two calls of one channel. */
export interface ChannelRequest {
  readonly method: 'POST'
  /** Appended to the path of `base_url`. */
  readonly path: string
  readonly headers: ReadonlyArray<readonly [string, string]>
}

export const chatCompletionsRequest = (channel: ChannelEntry): ChannelRequest => ({
  method: 'POST',
  path: '/chat/completions',
  headers: [
    ['authorization', `Bearer ${channel.api_key}`],
    ['content-type', 'application/json'],
    // A meter cannot read compressed bytes, and what is not compressed is not delayed.
    ['accept-encoding', 'identity'],
    ['user-agent', 'tollgate'],
    ...Object.entries(channel.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
  ],
})
