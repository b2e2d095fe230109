/** The credentials of a channel: whether they are set, and which texts must stay secret. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { AUTH_SECRETS, type ChannelAuth } from '../../../schemas/config/channel-auth.ts'

/** Returns the secrets of `auth`, those that are given. */
export const listAuthSecrets = (auth: ChannelAuth | undefined): string[] =>
  auth === undefined
    ? []
    : AUTH_SECRETS[auth.type]
        .flatMap((field) => (auth as Readonly<Record<string, unknown>>)[field] ?? [])
        .map(String)

/** Returns whether the channel may be called: one without a key, or with an empty secret, is off. */
export const hasAccess = ({ api_key: key, auth }: Pick<ChannelEntry, 'api_key' | 'auth'>): boolean =>
  auth === undefined ? key !== '' : !listAuthSecrets(auth).includes('')

/** The last tokens of channels with `auth`. */
const tokens = new WeakMap<object, readonly string[]>()
const KEPT_TOKENS = 2

/** Notes a token as a secret of the channel. */
export const noteToken = (channel: ChannelEntry, token: string): void => {
  tokens.set(channel, [token, ...(tokens.get(channel) ?? [])].slice(0, KEPT_TOKENS))
}

/** Returns the last tokens of the channel; the same list until there is a new one. */
export const listTokens = (channel: ChannelEntry): readonly string[] | undefined => tokens.get(channel)

const NAMES_A_KEY = /auth|key|token|secret|cookie/i

/** Returns what a call to the channel proves itself by: other headers may hold words that answers have too. */
export const listSentKeys = (channel: ChannelEntry): string[] => [
  channel.api_key,
  ...(tokens.get(channel) ?? []),
  ...Object.entries(channel.headers).flatMap(([name, value]) =>
    NAMES_A_KEY.test(name) ? value.split(/\s+/) : [],
  ),
]

/** Returns the texts that no customer and no log may show: keys, tokens and extra headers. */
export const listChannelSecrets = (channel: ChannelEntry): string[] => [
  channel.api_key,
  ...channel.api_keys,
  ...listAuthSecrets(channel.auth),
  ...(tokens.get(channel) ?? []),
  ...Object.values(channel.headers),
]

/** The end of a key that may be shown, so that an operator knows which it is. */
const TAIL_CHARS = 4
/** Of a shorter key nothing is shown. */
const MIN_SHOWN_CHARS = 16

export const maskAllButTail = (key: string): string =>
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
