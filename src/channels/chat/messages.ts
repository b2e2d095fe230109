/** Adapter for upstreams of the messages protocol. */
import { Buffer } from 'node:buffer'
import { parseRawJson } from '../../core/json/exact.ts'
import {
  buildRequest,
  type ChannelAdapter,
  type CountingAdapter,
  chooseBase,
  type HeaderFields,
} from '../channel.ts'

/**
 * The version that a client without an SDK sends, and that translated calls use. See docs/api-rules.md, "Names and
 * forms".
 */
const PROTOCOL_VERSION = '2023-06-01'
const VERSION_HEADER = 'anthropic-version'
/** Features that the client requests by name. */
export const FEATURES_HEADER = 'anthropic-beta'

const OTHER_VERSION_HEADER = 'vendor-version'
/** Headers of a client that upstreams get. */
export const CLIENT_HEADERS = [VERSION_HEADER, OTHER_VERSION_HEADER, FEATURES_HEADER]

function copyCallHeaders(header: (name: string) => string): HeaderFields {
  const version = header(VERSION_HEADER) || header(OTHER_VERSION_HEADER) || PROTOCOL_VERSION
  const features = header(FEATURES_HEADER)
  const own = [VERSION_HEADER, version] as const
  return features === '' ? [own] : [own, [FEATURES_HEADER, features]]
}

const adapter = (path: string): ChannelAdapter => ({
  variant: () => path,
  request: (channel) => buildRequest(channel, chooseBase(channel, 'messages'), path, 'x-api-key'),
  callHeaders: copyCallHeaders,
})

export const messagesChannel: ChannelAdapter = adapter('/v1/messages')
/** Counts the tokens of a request without running it. */
export const countTokensChannel: CountingAdapter = {
  ...adapter('/v1/messages/count_tokens'),
  countField: 'input_tokens',
}

/** Returns the body for a platform whose path names the model: without the fields that the path says, and with further ones. Numbers stay as they are written. */
export function moveModelToPath(
  body: Buffer,
  without: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): Buffer {
  const request = parseRawJson(body.toString('utf8')) as Record<string, unknown>
  const kept = Object.entries(request).filter(([name]) => !without.includes(name))
  return Buffer.from(JSON.stringify({ ...fields, ...Object.fromEntries(kept) }))
}
