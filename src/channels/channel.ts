/** The interface of a channel adapter: it describes the request to an upstream and does no I/O. */
import type { Buffer } from 'node:buffer'
import type { ChannelEntry, ChatProtocol, KeyHeader } from '../../schemas/config/catalog.ts'

export type HeaderFields = ReadonlyArray<readonly [string, string]>

/** The parts of a call that decide its URL and headers. */
export interface ChannelCall {
  readonly upstreamModel: string
  readonly stream: boolean
  /** The client's query string, which names the framing of a stream in some protocols. */
  readonly query: string
}

/** The parts of a POST that are equal for two calls with the same `variant`. */
interface ChannelRequest {
  /** Absolute, without a slash at its end. */
  readonly base: string
  /** Appended to the path of `base`. */
  readonly path: string
  readonly headers: HeaderFields
}

export interface ChannelAdapter {
  /** Returns the variant. Calls of one channel with equal variants have equal requests. */
  variant(call: ChannelCall): string
  request(channel: ChannelEntry, call: ChannelCall): ChannelRequest
  /** Returns headers that differ from call to call, from those of the client; absent without any. */
  callHeaders?(header: (name: string) => string): HeaderFields
  /** Returns the body for this upstream; absent where it takes the protocol's own. */
  body?(body: Buffer, channel: ChannelEntry, call: ChannelCall, header: (name: string) => string): Buffer
}

/** The protocols that have a way to count tokens. */
export type CountingProtocol = 'messages' | 'generate-content' | 'responses'

/** An adapter of an endpoint that counts the tokens of a request without running it. */
export interface CountingAdapter extends ChannelAdapter {
  /** Field of the upstream's answer with the count. */
  readonly countField: string
}

const JSON_TYPE = 'application/json'

/** Returns the headers of every upstream call besides the key. */
const makeCommonHeaders = (channel: ChannelEntry, contentType: string): HeaderFields => [
  ['content-type', contentType],
  // A meter cannot read compressed bytes, and uncompressed ones are not delayed.
  ['accept-encoding', 'identity'],
  ['user-agent', 'tollgate'],
  ...Object.entries(channel.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
]

/** Returns the header with the channel's key; none for one with `auth`. `usual` is the one of the protocol. */
export function keyFields(
  { api_key: key, key_header: header, auth }: ChannelEntry,
  usual: KeyHeader,
): HeaderFields {
  if (auth !== undefined) return []
  const name = header ?? usual
  return [[name, name === 'authorization' ? `Bearer ${key}` : key]]
}

/** Returns a request with the headers of every call. `usualKey` is the header of the protocol. */
export const buildRequest = (
  channel: ChannelEntry,
  base: string,
  path: string,
  usualKey: KeyHeader,
  contentType = JSON_TYPE,
): ChannelRequest => ({
  base,
  path,
  headers: [...keyFields(channel, usualKey), ...makeCommonHeaders(channel, contentType)],
})

/** End of a `base_url` with a version, such as `/v1`, `/api/v4` or `/v1beta/openai`. */
const VERSION_SUFFIX = /\/v\d+[a-z0-9]*(\/[^/]+)?$/

/**
 * Returns the base of a channel's URLs for `protocol`: the configured one for the channel's own protocol; those that
 * it converts by itself begin at the same root, before any version.
 */
export const chooseBase = (channel: ChannelEntry, protocol: ChatProtocol): string =>
  channel.protocol === protocol ? channel.base_url : channel.base_url.replace(VERSION_SUFFIX, '')

/** Returns the path after `chooseBase`, for a protocol whose bases end in the version. */
export const addVersion = (channel: ChannelEntry, protocol: ChatProtocol, path: string): string =>
  channel.protocol === protocol ? path : `/v1${path}`
