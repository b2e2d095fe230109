/** Reads an upstream's answer in one piece. A client that asked for a stream gets it as the events of one. */
import type { Buffer } from 'node:buffer'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { withHeaderUsage } from '../../../src/protocols/aws/header-usage.ts'
import type { ChatCall, ProtocolAdapter, WholeAnswer } from '../../../src/protocols/dialect.ts'
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
    metered:
      provider === 'bedrock' ? withHeaderUsage(read.metered, (name) => headers.get(name)) : read.metered,
  }
}
