/**
 * A body of the responses protocol that comes to the endpoint of chat-completions, as Cursor sends it. Its client gets a chat
 * completion. See docs/api-rules.md, "Chat protocols".
 */
import type { Buffer } from 'node:buffer'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { cutField } from '../../core/json/splice.ts'
import { PLAIN_OPTIONS, type RewrittenBody } from '../dialect.ts'
import { responsesDialect } from '../responses/dialect.ts'
import { responsesClient } from '../responses/translation/sides.ts'
import { DroppedFields } from '../translate/dropped-fields.ts'
import { joinFields } from './agent-body.ts'
import { writeCompletionRequest } from './translation/write-request.ts'

/** Both protocols have it. */
const SHARED = 'stream_options'

/**
 * Returns the body as one of chat-completions; null for any but one that has input and no messages.
 * @throws Failure `invalid_request` with a message that names the field
 */
export function writeResponsesAsChat(given: Buffer): RewrittenBody | null {
  const found = scanFields(given).fields
  if (found.has('messages') || !found.has('input')) return null
  const call = responsesDialect.read({ query: '', body: given })
  const dropped = new DroppedFields()
  const written = writeCompletionRequest(
    responsesClient.read(call, dropped),
    call,
    {
      ...PLAIN_OPTIONS,
      upstreamModel: call.model,
      outputLimitField: 'max_completion_tokens',
    },
    dropped,
  )
  const own = [...scanFields(written).fields.values()].map((span) => cutField(written, span))
  const shared = found.get(SHARED)
  const all = shared === undefined ? own : [...own, cutField(given, shared)]
  return { body: joinFields(all), leftOut: dropped.all().dropped }
}
