/** What names the conversation of a request in its body. See docs/api-rules.md, "Attempts". */
import type { ChatCall } from '../dialect.ts'
import { fieldsOf, type LooseObject, textOf } from '../loose.ts'

/** Longer names with the same beginning are one. */
const MAX_KEY_CHARS = 512

/** Returns the name of the conversation, or of its user, in the body; nothing without one. */
export function conversationKey(request: LooseObject): Pick<ChatCall, 'conversationKey'> {
  const name = textOf(request.prompt_cache_key) || textOf(fieldsOf(request.metadata).user_id)
  return name === '' ? {} : { conversationKey: name.slice(0, MAX_KEY_CHARS) }
}
