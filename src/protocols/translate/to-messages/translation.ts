/**
 * Adapts a chat-completions call to an upstream of the messages protocol, and its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { Provider } from '../../../../schemas/config/catalog.ts'
import type { ProtocolAdapter } from '../../dialect.ts'
import { MessagesReader } from '../../messages/reader.ts'
import { answersOf } from '../chat-completions.ts'
import { filesToFetch, translateRequest } from './request.ts'

/** Platforms that take files in base64 alone; other upstreams of the protocol fetch links themselves. */
const FETCH_NOTHING: ReadonlySet<Provider> = new Set<Provider>(['bedrock', 'vertex'])

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
  urlsToFetch: (call, provider) =>
    provider !== undefined && FETCH_NOTHING.has(provider) ? filesToFetch(call) : [],
  encodeRequest: translateRequest,
})
