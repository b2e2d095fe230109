/** Joins channels, which describe requests, to the client, which sends them. */
import type { Observable } from 'rxjs'
import type { ForwardDeps } from '../../pipelines/stages/forward.ts'
import type { ChannelEntry } from '../../schemas/catalog.ts'
import { chatCompletionsRequest } from '../channels/chat-completions.ts'
import type { UpstreamClient } from '../upstream/client.ts'
import { finishHead, headPrefix } from '../upstream/head.ts'
import { observeUpstream, type UpstreamEvent } from '../upstream/observe.ts'
import { type Origin, parseOrigin } from '../upstream/origin.ts'

interface Target {
  readonly origin: Origin
  /** The part of the request head that is the same for every call of the channel. */
  readonly prefix: string
}

function targetOf(channel: ChannelEntry): Target {
  const { origin, pathPrefix } = parseOrigin(channel.base_url)
  const { method, path, headers } = chatCompletionsRequest(channel)
  return { origin, prefix: headPrefix(method, pathPrefix + path, origin.authority, headers) }
}

/** A channel's target is made once for each configuration: channel entries are new objects after a reload. */
export function upstreamCalls(client: UpstreamClient): ForwardDeps['openUpstream'] {
  const targets = new WeakMap<ChannelEntry, Target>()
  return ({ channel, body, requestId, deadlineMs, traceparent }): Observable<UpstreamEvent> => {
    let target = targets.get(channel)
    if (target === undefined) {
      target = targetOf(channel)
      targets.set(channel, target)
    }
    const own: [string, string][] = [['x-request-id', requestId]]
    if (traceparent !== null) own.push(['traceparent', traceparent])
    const head = finishHead(target.prefix, body.length, own)
    return observeUpstream(client, { origin: target.origin, head, body, deadlineMs })
  }
}
