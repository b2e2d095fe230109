/** Requests about a response that an upstream of the responses protocol keeps. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { MediaRequest } from '../media/adapter.ts'
import { bareRequest, getRequest, pathPart } from '../media/request.ts'
import { isOlderAzure } from '../providers/platforms/azure.ts'

export interface StoredResponseQuestion {
  readonly method: 'GET' | 'DELETE'
  readonly id: string
  /** The rest of the path, such as `/input_items`. */
  readonly below: string
  /** With its question mark; empty without one. */
  readonly query: string
}

export function storedResponseRequest(
  channel: ChannelEntry,
  { method, id, below, query }: StoredResponseQuestion,
): MediaRequest {
  const version = isOlderAzure(channel) ? `${query === '' ? '?' : '&'}api-version=${channel.api_version}` : ''
  const path = `/responses/${pathPart(id)}${below}${query}${version}`
  return method === 'GET' ? getRequest(channel, path) : bareRequest(channel, method, path)
}
