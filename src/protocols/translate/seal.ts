/**
 * Carries a vendor's proof of reasoning through clients of other protocols: they store it as their own and return it with the
 * next turn. See docs/translation.md, "Any two protocols".
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import type { Seal } from '../../../schemas/chat/conversation.ts'
import { type ChatProtocol, chatProtocol } from '../../../schemas/config/catalog.ts'
import { parseFields } from '../loose.ts'

const PREFIX = 'tollgate:'
/** A multiple of three bytes: in base64 it begins each text that has it. */
const PREFIX_BASE64 = Buffer.from(PREFIX).toString('base64')

const carriedSeal = z.object({
  protocol: chatProtocol,
  data: z.string(),
  isRedacted: z.boolean().optional(),
  isOfCall: z.boolean().optional(),
  text: z.string().optional(),
}) satisfies z.ZodType<Seal>

/** Returns the text that a client of the protocol stores. Clients of generate-content need base64. */
export function printSeal(seal: Seal, client: ChatProtocol): string {
  if (seal.protocol === client) return seal.data
  const carried = PREFIX + JSON.stringify(seal)
  return client === 'generate-content' ? Buffer.from(carried).toString('base64') : carried
}

/** Returns the seal in a text that a client of the protocol has stored; null for an empty text. */
export function readSeal(text: string, client: ChatProtocol): Seal | null {
  if (text === '') return null
  const isEncoded = client === 'generate-content' && text.startsWith(PREFIX_BASE64)
  const carried = isEncoded ? Buffer.from(text, 'base64').toString() : text
  const { success, data } = carriedSeal.safeParse(
    carried.startsWith(PREFIX) ? parseFields(carried.slice(PREFIX.length)) : null,
  )
  return success ? (data as Seal) : { protocol: client, data: text }
}
