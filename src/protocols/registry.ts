/** Every client protocol, and every passage from one to an upstream. A new one is a file and a line here. */
import type { ChannelProtocol, ChatProtocol } from '../../schemas/config/catalog.ts'
import { chatCompletions, chatCompletionsNative } from './chat-completions/native.ts'
import type { Dialect, Passage } from './dialect.ts'
import { generateContentDialect, generateContentNative } from './generate-content/dialect.ts'
import { messagesDialect, messagesNative } from './messages/dialect.ts'
import { responsesDialect, responsesNative } from './responses/dialect.ts'
import { chatCompletionsToGenerateContent } from './translate/to-generate-content/translation.ts'
import { chatCompletionsToMessages } from './translate/to-messages/translation.ts'

const PASSAGES: readonly Passage[] = [
  chatCompletionsNative,
  messagesNative,
  generateContentNative,
  responsesNative,
  chatCompletionsToMessages(),
  chatCompletionsToGenerateContent(),
]

const byProtocols = new Map<ChatProtocol, Map<ChannelProtocol, Passage>>()
for (const passage of PASSAGES) {
  const { from, to } = passage
  byProtocols.set(from, (byProtocols.get(from) ?? new Map<ChannelProtocol, Passage>()).set(to, passage))
}

export const DIALECTS = {
  'chat-completions': chatCompletions,
  messages: messagesDialect,
  'generate-content': generateContentDialect,
  responses: responsesDialect,
} as const satisfies Record<ChatProtocol, Dialect>

/** Routes are made of passages that exist: asking for another is a fault of the program. */
export function passageOf(client: ChatProtocol, upstream: ChannelProtocol): Passage {
  const passage = byProtocols.get(client)?.get(upstream)
  if (passage === undefined) throw new Error(`there is no passage from ${client} to ${upstream}`)
  return passage
}
