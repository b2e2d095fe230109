/** What a channel adapter is: it describes the request to an upstream and does no I/O. */
import type { ChannelEntry, ChatProtocol } from '../../schemas/config/catalog.ts'

export type HeaderFields = ReadonlyArray<readonly [string, string]>

/** What of a call decides where it goes. */
export interface ChannelCall {
  readonly upstreamModel: string
  readonly stream: boolean
  /** The client's query string, which names the framing of a stream in some protocols. */
  readonly query: string
}

/** What does not change between two calls with the same `variant`. */
export interface ChannelRequest {
  readonly method: 'POST'
  /** Absolute, without a slash at its end. */
  readonly base: string
  /** Appended to the path of `base`. */
  readonly path: string
  readonly headers: HeaderFields
}

export interface ChannelAdapter {
  /** Calls of one channel with equal variants have equal requests. */
  variant(call: ChannelCall): string
  request(channel: ChannelEntry, call: ChannelCall): ChannelRequest
  /** Headers that each call has its own of, from those of the client. */
  callHeaders(header: (name: string) => string): HeaderFields
}

/** Headers of every upstream call besides the key. */
export const commonHeaders = (channel: ChannelEntry): HeaderFields => [
  ['content-type', 'application/json'],
  // A meter cannot read compressed bytes, and what is not compressed is not delayed.
  ['accept-encoding', 'identity'],
  ['user-agent', 'tollgate'],
  ...Object.entries(channel.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
]

export const bearer = (channel: ChannelEntry): readonly [string, string] => [
  'authorization',
  `Bearer ${channel.api_key}`,
]

/** What `base_url` ends in where it holds the version, such as `/v1`, `/api/v4` or `/v1beta/openai`. */
const VERSION_SUFFIX = /\/v\d+[a-z0-9]*(\/[^/]+)?$/

/**
 * Where the upstream of a channel has `protocol`: for the channel's own as the operator's page says; those that it
 * converts by itself begin at the same root, before any version.
 */
export const baseFor = (channel: ChannelEntry, protocol: ChatProtocol): string =>
  channel.protocol === protocol ? channel.base_url : channel.base_url.replace(VERSION_SUFFIX, '')

/** The path behind `baseFor`, of a protocol whose own bases end in the version. */
export const versioned = (channel: ChannelEntry, protocol: ChatProtocol, path: string): string =>
  channel.protocol === protocol ? path : `/v1${path}`
