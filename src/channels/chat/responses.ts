/** Requests to upstreams of the responses protocol: new answers, and what the upstream keeps of earlier ones. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import {
  addVersion,
  buildRequest,
  type ChannelAdapter,
  type CountingAdapter,
  chooseBase,
} from '../channel.ts'
import type { MediaRequest } from '../media/adapter.ts'
import { bareRequest, getRequest, jsonTextRequest, pathPart } from '../media/request.ts'
import { findProvider } from '../providers/presets.ts'

const PROTOCOL = 'responses'
const PATH = '/responses'

const makeAdapter = (path: string): ChannelAdapter => ({
  variant: () => path,
  request: (channel) =>
    buildRequest(
      channel,
      chooseBase(channel, PROTOCOL),
      addVersion(channel, PROTOCOL, path),
      'authorization',
    ),
})

export const responsesChannel = makeAdapter(PATH)

/** `POST /v1/responses/input_tokens` of a native upstream. */
export const countResponsesChannel: CountingAdapter = {
  ...makeAdapter(`${PATH}/input_tokens`),
  countField: 'input_tokens',
}

export interface StoredQuestion {
  readonly method: 'GET' | 'DELETE' | 'POST'
  readonly kind: 'responses' | 'conversations'
  /** Empty for a new one. */
  readonly id: string
  /** The rest of the path, such as `/input_items`. */
  readonly below?: string
  /** With its question mark. */
  readonly query?: string
  /** JSON. */
  readonly body?: Buffer
}

/** Returns the query that the provider adds to this one, with its `?` or `&`. */
function joinQuery(channel: ChannelEntry, query: string): string {
  const own = findProvider(channel.provider)?.storedQuery?.(channel) ?? ''
  return own === '' ? '' : `${query === '' ? '?' : '&'}${own}`
}

/** Returns the path of new responses. */
export const makeResponsesPath = (channel: ChannelEntry): string => `${PATH}${joinQuery(channel, '')}`

/** Returns the path of a response, and of what is below it. */
export const makeResponsePath = (channel: ChannelEntry, id: string, below = ''): string =>
  `${PATH}/${pathPart(id)}${below}${joinQuery(channel, '')}`

export function makeStoredRequest(
  channel: ChannelEntry,
  { method, kind, id, below = '', query = '', body }: StoredQuestion,
): MediaRequest {
  const one = id === '' ? '' : `/${pathPart(id)}`
  const path = `/${kind}${one}${below}${query}${joinQuery(channel, query)}`
  if (method === 'GET') return getRequest(channel, path)
  return body === undefined ? bareRequest(channel, method, path) : jsonTextRequest(channel, path, body)
}
