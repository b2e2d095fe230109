/** What names the conversation of a request in its body. See docs/api-rules.md, "Attempts". */
import { type LooseObject, toFields, toText } from '../loose.ts'

/** Longer names with the same beginning are one. */
const MAX_KEY_CHARS = 512

/** Returns the name of the conversation, or of its user, in the body; undefined without one. */
export function readConversationKey(request: LooseObject): string | undefined {
  const name = toText(request.prompt_cache_key) || toText(toFields(request.metadata).user_id)
  return name === '' ? undefined : name.slice(0, MAX_KEY_CHARS)
}
