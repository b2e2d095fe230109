/**
 * Adapts a chat-completions call to an upstream of the messages protocol, and its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import { findProvider } from '../../../channels/providers/presets.ts'
import type { ProtocolAdapter } from '../../dialect.ts'
import { MessagesReader } from '../../messages/reader.ts'
import { answersOf } from '../chat-completions.ts'
import { filesToFetch, translateRequest } from './request.ts'

/** Returns the translation. `now` returns epoch milliseconds. */
export const chatCompletionsToMessages = (now: () => number = Date.now): ProtocolAdapter => ({
  ...answersOf(
    {
      reader: () => new MessagesReader(),
      modelOf: ({ model }) => model,
      countsThoughts: false,
    },
    now,
  ),
  to: 'messages',
  // Most upstreams of the protocol fetch links themselves.
  urlsToFetch: (call, provider) => (findProvider(provider)?.fetchesNothing ? filesToFetch(call) : []),
  encodeRequest: translateRequest,
})
