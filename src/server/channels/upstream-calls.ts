/** Joins channels, which describe requests, to the client, which sends them. */
import type { UpstreamCallRequest } from '../../../pipelines/chat/forward/attempt-request.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { ChannelAdapter, HeaderFields } from '../../channels/channel.ts'
import { findFormType } from '../../channels/chat/passed.ts'
import { findChatAdapter } from '../../channels/chat/registry.ts'
import {
  buildHeadPrefix,
  finishHead,
  type HeadPrefix,
  type Origin,
  parseOrigin,
  type UpstreamCall,
  type UpstreamClient,
  type UpstreamHandler,
} from '../../upstream/client.ts'
import { AuthorizedCall, type SendWith } from './authorized-call.ts'

/** Of every call of chat. */
const METHOD = 'POST'
const NO_HEADERS: HeaderFields = []

interface Target {
  readonly origin: Origin
  /** The part of the request head that is the same for every call of the channel. */
  readonly prefix: HeadPrefix
  readonly url: URL
}

function resolveTarget(adapter: ChannelAdapter, call: UpstreamCallRequest): Target {
  const { base, path, headers } = adapter.request(call.channel, call)
  const { origin, pathPrefix } = parseOrigin(base)
  const url = new URL(pathPrefix + path, base)
  return { origin, url, prefix: buildHeadPrefix(METHOD, pathPrefix + path, origin.authority, headers) }
}

/**
 * Returns the calls to upstreams. Makes a channel's targets once for each configuration: channel entries are new
 * objects after a reload.
 */
export function openUpstreamCalls(
  client: UpstreamClient,
  findAuthorizer: (channel: ChannelEntry) => Authorizer,
): (call: UpstreamCallRequest, handler: UpstreamHandler, adapter?: ChannelAdapter) => UpstreamCall {
  const targets = new WeakMap<ChannelEntry, Map<string, Target>>()
  const recallTarget = (adapter: ChannelAdapter, call: UpstreamCallRequest): Target => {
    const variants = targets.get(call.channel) ?? new Map<string, Target>()
    const variant = call.protocol + adapter.variant(call)
    const known = variants.get(variant)
    if (known !== undefined) return known
    const target = resolveTarget(adapter, call)
    targets.set(call.channel, variants.set(variant, target))
    return target
  }
  return (call, handler, adapter = findChatAdapter(call.channel, call.protocol)) => {
    const { origin, prefix, url } = recallTarget(adapter, call)
    const { traceparent } = call
    const headers = adapter.callHeaders?.(call.header) ?? NO_HEADERS
    const own = traceparent === null ? headers : [...headers, ['traceparent', traceparent] as const]
    const body =
      adapter.body === undefined ? call.body : adapter.body(call.body, call.channel, call, call.header)
    const { deadlineMs, headTimeoutMs, onFreshConnection } = call
    const requestId = `x-request-id: ${call.requestId}\r\n`
    if (call.channel.auth === undefined) {
      const head = finishHead(prefix, body.length, own, requestId)
      return client.send({ origin, head, body, deadlineMs, headTimeoutMs, onFreshConnection }, handler)
    }
    const send: SendWith = (authorization, deadlineMs, receiver) => {
      const head = finishHead(prefix, body.length, [...own, ...authorization], requestId)
      return client.send({ origin, head, body, deadlineMs, headTimeoutMs, onFreshConnection }, receiver)
    }
    const request = {
      method: METHOD,
      url,
      contentType: findFormType(call.protocol) ?? 'application/json',
      body,
    }
    return new AuthorizedCall(findAuthorizer(call.channel), request, { send, handler, deadlineMs })
  }
}
