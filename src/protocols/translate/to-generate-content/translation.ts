/**
 * Adapts a chat-completions call to an upstream of the generate-content protocol, and its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { ProtocolAdapter } from '../../dialect.ts'
import { GenerateContentReader } from '../../generate-content/reader.ts'
import { answersOf } from '../chat-completions.ts'
import { filesToFetch, translateRequest } from './request.ts'

/** Returns the translation. `now` returns epoch milliseconds. Streams are read as events, requested with `alt=sse`. */
export const chatCompletionsToGenerateContent = (now: () => number = Date.now): ProtocolAdapter => ({
  ...answersOf(
    {
      reader: () => new GenerateContentReader(),
      modelOf: ({ modelVersion }) => modelVersion,
      countsThoughts: true,
    },
    now,
  ),
  to: 'generate-content',
  urlsToFetch: filesToFetch,
  encodeRequest: translateRequest,
})
