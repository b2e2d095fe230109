/** Finds `[simulate: …]` in the prompt. */

import { isObject } from '../dialect.ts'

const MESSAGE_DIRECTIVES = /\[simulate:([^\]]*)\]/

/** What the first of them holds in a text, or in the parts of a message that have a `text`; null without one. */
export function directivesIn(content: unknown): string | null {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content]
  for (const part of parts) {
    const text = isObject(part) ? part.text : part
    const found = typeof text === 'string' ? MESSAGE_DIRECTIVES.exec(text) : null
    if (found !== null) return found[1] as string
  }
  return null
}
