/** Joins channels, which describe requests, to the client, which sends them. */
import type { UpstreamCallRequest } from '../../pipelines/chat/forward/deps.ts'
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import type { ChannelAdapter } from '../channels/channel.ts'
import { chatAdapterOf } from '../channels/chat/registry.ts'
import {
  finishHead,
  type HeadPrefix,
  headPrefix,
  type Origin,
  parseOrigin,
  type UpstreamCall,
  type UpstreamClient,
  type UpstreamHandler,
} from '../upstream/client.ts'

interface Target {
  readonly origin: Origin
  /** The part of the request head that is the same for every call of the channel. */
  readonly prefix: HeadPrefix
}

function targetOf(adapter: ChannelAdapter, call: UpstreamCallRequest): Target {
  const { method, base, path, headers } = adapter.request(call.channel, call)
  const { origin, pathPrefix } = parseOrigin(base)
  return { origin, prefix: headPrefix(method, pathPrefix + path, origin.authority, headers) }
}

/**
 * Returns the calls to upstreams. Makes a channel's targets once for each configuration: channel entries are new
 * objects after a reload.
 */
export function upstreamCalls(
  client: UpstreamClient,
): (call: UpstreamCallRequest, handler: UpstreamHandler, adapter?: ChannelAdapter) => UpstreamCall {
  const targets = new WeakMap<ChannelEntry, Map<string, Target>>()
  const remembered = (adapter: ChannelAdapter, call: UpstreamCallRequest): Target => {
    const variants = targets.get(call.channel) ?? new Map<string, Target>()
    const variant = call.protocol + adapter.variant(call)
    const known = variants.get(variant)
    if (known !== undefined) return known
    const target = targetOf(adapter, call)
    targets.set(call.channel, variants.set(variant, target))
    return target
  }
  return (call, handler, adapter = chatAdapterOf(call.channel, call.protocol)) => {
    const { origin, prefix } = remembered(adapter, call)
    const { traceparent } = call
    const headers = adapter.callHeaders(call.header)
    const own = traceparent === null ? headers : [...headers, ['traceparent', traceparent] as const]
    const body = adapter.body === undefined ? call.body : adapter.body(call.body, call.channel, call)
    const head = finishHead(prefix, body.length, own, `x-request-id: ${call.requestId}\r\n`)
    const { deadlineMs, onFreshConnection } = call
    return client.send({ origin, head, body, deadlineMs, onFreshConnection }, handler)
  }
}
