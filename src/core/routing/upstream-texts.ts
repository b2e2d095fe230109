/** Names and secrets of a call's channels that no customer may see. */
import type { Route } from './catalog.ts'
import { listChannelSecrets } from './channel-access.ts'

interface UpstreamTexts {
  /** Our names of the channels, their hosts, their names of the model. The name in the customer's request is no secret. */
  readonly names: readonly string[]
  readonly hosts: readonly string[]
  /** Keys and extra headers. */
  readonly secrets: readonly string[]
}

export function listUpstreamTexts(
  tried: readonly Pick<Route, 'channel' | 'upstreamModel'>[],
  modelId: string,
): UpstreamTexts {
  const hosts = tried.map(({ channel }) => new URL(channel.base_url).hostname)
  const names = [...tried.flatMap(({ channel, upstreamModel }) => [channel.id, upstreamModel]), ...hosts]
  return {
    hosts,
    names: names.filter((name) => name !== modelId),
    secrets: tried.flatMap(({ channel }) =>
      listChannelSecrets(channel).flatMap((value) => value.split(/\s+/)),
    ),
  }
}
