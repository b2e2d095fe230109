/** What names the conversation of a request in its body. See docs/api-rules.md, "Attempts". */
import type { ChatCall } from '../dialect.ts'
import { type LooseObject, toFields, toText } from '../loose.ts'

/** Longer names with the same beginning are one. */
const MAX_KEY_CHARS = 512

/** Returns the name of the conversation, or of its user, in the body; nothing without one. */
export function conversationKey(request: LooseObject): Pick<ChatCall, 'conversationKey'> {
  const name = toText(request.prompt_cache_key) || toText(toFields(request.metadata).user_id)
  return name === '' ? {} : { conversationKey: name.slice(0, MAX_KEY_CHARS) }
}
