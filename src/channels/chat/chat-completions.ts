/** Adapter for upstreams of the chat-completions protocol. */
import { Buffer } from 'node:buffer'
import { parseRawJson } from '../../core/json/exact.ts'
import { addVersion, buildRequest, type ChannelAdapter, chooseBase } from '../channel.ts'
import { PROVIDERS } from '../providers/presets.ts'
import type { Fields, Provider } from '../providers/provider.ts'

const PROTOCOL = 'chat-completions'
const PATH = '/chat/completions'

export const chatCompletionsChannel: ChannelAdapter = {
  variant: () => '',
  request: (channel) =>
    buildRequest(
      channel,
      chooseBase(channel, PROTOCOL),
      addVersion(channel, PROTOCOL, PATH),
      'authorization',
    ),
}

/** The rewrites of all providers by quirk: a channel without a provider can name a quirk too. */
const REWRITES: NonNullable<Provider['quirks']> = Object.assign(
  {},
  ...Object.values(PROVIDERS).map(({ quirks }) => quirks),
)

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns null for a request with more numbers in odd spellings than are compared: the upstream gets it as it is. */
function parseRequest(body: Buffer): unknown {
  try {
    return parseRawJson(body.toString('utf8'))
  } catch {
    return null
  }
}

/** Returns the request as the upstream takes it. Numbers stay as they are written. */
export function rewriteRequest(body: Buffer, quirks: readonly string[]): Buffer {
  const rewrites = quirks.flatMap((quirk) => REWRITES[quirk] ?? [])
  if (rewrites.length === 0) return body
  const request = parseRequest(body)
  if (!isFields(request)) return body
  return Buffer.from(JSON.stringify(rewrites.reduce((fields, rewrite) => rewrite(fields), request)))
}

/** The same for upstreams that refuse what others take. */
export const quirkyChatCompletionsChannel: ChannelAdapter = {
  ...chatCompletionsChannel,
  body: (body, { quirks }) => rewriteRequest(body, quirks),
}
