/** The means by which a channel is let in at its upstream. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'

/** Returns whether the channel may be called: one without a key is off. */
export const hasAccess = ({ api_key: key }: Pick<ChannelEntry, 'api_key'>): boolean => key !== ''

/** Returns the texts that no customer and no log may show: keys and extra headers. */
export const channelSecrets = ({
  api_key: key,
  api_keys: keys,
  headers,
}: Pick<ChannelEntry, 'api_key' | 'api_keys' | 'headers'>): string[] => [
  key,
  ...keys,
  ...Object.values(headers),
]

/** The end of a key that may be shown, so that an operator knows which it is. */
const TAIL_CHARS = 4
/** Of a shorter key nothing is shown. */
const MIN_SHOWN_CHARS = 16

export const maskedTail = (key: string): string =>
  key.length < MIN_SHOWN_CHARS ? '…' : `…${key.slice(-TAIL_CHARS)}`

/**
 * Returns a channel, as the file has it, with its keys in one form: those that are not empty, each once. `api_key` is
 * the first of them, and `api_keys` lists them where there are several.
 */
export function withOneFormOfKeys(channel: unknown): unknown {
  if (typeof channel !== 'object' || channel === null || !('api_keys' in channel)) return channel
  const { api_key: first, api_keys: keys } = channel as { api_key?: unknown; api_keys: unknown }
  const all = [first ?? '', ...(Array.isArray(keys) ? keys : [keys])]
  // Another type is left for the schema to name.
  if (!all.every((key) => typeof key === 'string')) return channel
  const given = [...new Set(all.map((key) => key.trim()).filter((key) => key !== ''))]
  return { ...channel, api_key: given[0] ?? '', api_keys: given.length > 1 ? given : [] }
}
