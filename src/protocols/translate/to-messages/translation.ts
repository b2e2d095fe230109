/**
 * Adapts a chat-completions call to an upstream of the messages protocol, and of its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { ProtocolAdapter } from '../../dialect.ts'
import { MessagesReader } from '../../messages/reader.ts'
import { answersOf, sourceOf } from '../chat-completions.ts'
import { TranslatedStream } from '../stream.ts'
import { translateRequest } from './request.ts'

/** Returns the translation. `now` returns epoch milliseconds. */
export const chatCompletionsToMessages = (now: () => number = Date.now): ProtocolAdapter => ({
  ...answersOf(
    {
      reader: () => new MessagesReader(),
      stream: (reader, printer) => new TranslatedStream(reader, printer),
      modelOf: ({ model }) => model,
      countsThoughts: false,
    },
    now,
  ),
  to: 'messages',
  // Upstreams of this protocol fetch pictures themselves.
  urlsToFetch: () => [],
  encodeRequest: (call, { upstreamModel, outputCeiling }) =>
    translateRequest(sourceOf(call).body, {
      model: upstreamModel,
      stream: call.stream,
      outputLimit: call.outputLimit,
      outputCeiling,
    }),
})
