/**
 * Prompt caches: the messages protocol marks where a cached prefix ends, other protocols name calls that share one. See
 * docs/translation.md, "Any two protocols".
 */
import { createHash } from 'node:crypto'
import type { Conversation } from '../../../schemas/chat/conversation.ts'
import type { DroppedFields } from './dropped-fields.ts'

const KEY_CHARS = 32

/** Returns whether any part of the prompt is marked. */
export const hasMarks = ({ cache, instructions, turns, tools }: Conversation): boolean =>
  cache !== undefined ||
  [...instructions, ...tools, ...turns.flatMap(({ parts }) => parts)].some(
    (part) => 'cache' in part && part.cache !== undefined,
  )

/**
 * Returns the client's key, or one of the instructions, the tools and the beginning of a marked prompt, which stay the same
 * from turn to turn; null where the client asks for no cache.
 */
export function readCacheKey(conversation: Conversation, dropped: DroppedFields): string | null {
  const { settings, instructions, tools, turns } = conversation
  if (settings.cacheKey !== undefined) return settings.cacheKey.value
  if (!hasMarks(conversation)) return null
  dropped.change('cache_control', 'a prompt_cache_key')
  const names = tools.map((tool) => ('name' in tool ? tool.name : tool.type))
  const beginning = JSON.stringify([instructions.map(({ text }) => text), names, turns[0]])
  return createHash('sha256').update(beginning).digest('hex').slice(0, KEY_CHARS)
}
