/** Reads an upstream's answer in one piece. A client that asked for a stream gets it as the events of one. */
import type { Buffer } from 'node:buffer'
import { findProvider } from '../../../src/channels/providers/presets.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { ChatCall, Metered, ProtocolAdapter, WholeAnswer } from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders } from '../../../src/upstream/client.ts'

interface Answered {
  readonly adapter: ProtocolAdapter
  readonly headers: ResponseHeaders
  readonly route: Route
}

export function readWhole(asked: ChatCall, body: Buffer, { adapter, headers, route }: Answered): WholeAnswer {
  const { provider } = route.channel
  const read = adapter.readWhole(asked, body, provider)
  return {
    ...read,
    body: asked.stream && read.isAnswer ? adapter.wholeAsStream(asked, read.body) : read.body,
    metered: withHeaderUsage(read.metered, provider, headers),
  }
}

/** Returns the facts of a whole answer, with the counts of the headers where the body has none. */
export function withHeaderUsage(
  metered: Metered,
  provider: string | undefined,
  headers: Pick<ResponseHeaders, 'get'>,
): Metered {
  if (metered.usage !== null) return metered
  const usage = findProvider(provider)?.readHeaderUsage?.((name) => headers.get(name)) ?? null
  if (usage === null) return metered
  // A copy leaves out what a class counts when it is read.
  const { characters, model, suspect, reported, serviceTier, responseId } = metered
  const facts = { characters, model, suspect, reported, serviceTier, responseId }
  return { ...facts, usage, charactersSinceUsage: 0, isUsageWhole: true }
}
