/** What a channel adapter is: it describes the request to an upstream and does no I/O. Source: design rule 9. */
import type { ChannelEntry } from '../../schemas/catalog.ts'

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
  /** Appended to the path of `base_url`. */
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

const VERSION_SUFFIX = /\/v1$/

/**
 * `rest` behind the version that a base URL may end in. A channel's own protocol has its base as the operator's page
 * says; one whose upstream converts others has it for its own, and the others' paths begin at the same root.
 */
export const versioned = (channel: ChannelEntry, rest: string): string =>
  VERSION_SUFFIX.test(channel.base_url) ? rest : `/v1${rest}`
