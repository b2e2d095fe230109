/** The shortest request of each chat protocol, as a dialect reads it, with further fields. */
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import type { ChatCall } from '../../../../src/protocols/dialect.ts'
import { DIALECTS } from '../../../../src/protocols/registry.ts'

export const PLAIN_REQUESTS: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  messages: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  'generate-content': { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  responses: { model: 'm', input: [{ role: 'user', content: 'hi' }] },
}

/** Reads a body. @throws Failure as the dialect does */
export const readBody = (protocol: ChatProtocol, body: string): ChatCall =>
  DIALECTS[protocol].read({ model: 'm', query: '', body: Buffer.from(body) })

/** Reads the shortest request with more fields. @throws Failure as the dialect does */
export const chatWith = (protocol: ChatProtocol, more: object): ChatCall =>
  readBody(protocol, JSON.stringify({ ...PLAIN_REQUESTS[protocol], ...more }))
