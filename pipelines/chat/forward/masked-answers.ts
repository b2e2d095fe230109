/** Takes the keys of a channel out of its answers before anything reads them. See docs/security.md, "What is promised". */
import { Buffer } from 'node:buffer'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { type KeyMask, keyMask } from '../../../src/core/call-log/key-mask.ts'
import type { AnswerStream, ProtocolAdapter } from '../../../src/protocols/dialect.ts'

function masked(stream: AnswerStream, mask: KeyMask): AnswerStream {
  const push = stream.push.bind(stream)
  const end = stream.end.bind(stream)
  stream.push = (piece) => {
    const shown = mask.push(piece)
    return shown === null ? null : push(shown)
  }
  stream.end = () => {
    const rest = mask.end()
    const out = rest === null ? null : push(rest)
    const tail = end()
    return out === null || tail === null ? (out ?? tail) : Buffer.concat([out, tail])
  }
  return stream
}

/** Returns the adapter for an answer of the channel. */
export function maskingKeys(adapter: ProtocolAdapter, channel: ChannelEntry): ProtocolAdapter {
  const mask = keyMask(channel)
  if (mask === null) return adapter
  return {
    ...adapter,
    openStream: (call, provider) => masked(adapter.openStream(call, provider), mask),
    readWhole: (call, body, provider) => adapter.readWhole(call, mask.whole(body), provider),
  }
}
