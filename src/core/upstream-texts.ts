/** What the channels of a call show their upstreams of themselves, and what no customer may see. */
import type { Route } from './catalog.ts'

/**
 * Returns the names of the tried channels, their hosts and their models, and the secrets that they send: key and extra
 * headers. The model that the customer asked for is no secret.
 */
export function upstreamTexts(
  tried: readonly Pick<Route, 'channel' | 'upstreamModel'>[],
  modelId: string,
): [names: string[], secrets: string[]] {
  const names = tried.flatMap(({ channel, upstreamModel }) => [
    channel.id,
    upstreamModel,
    new URL(channel.base_url).hostname,
  ])
  const secrets = tried.flatMap(({ channel: { api_key, headers } }) =>
    [api_key, ...Object.values(headers)].flatMap((value) => value.split(/\s+/)),
  )
  return [names.filter((name) => name !== modelId), secrets]
}
