/** Every client protocol, and every adapter from one to an upstream. To add one, see docs/extending.md, "A client protocol". */
import type { ChannelProtocol, ChatProtocol, TRANSLATIONS } from '../../schemas/config/catalog.ts'
import { chatCompletions, chatCompletionsNative } from './chat-completions/dialect.ts'
import type { Dialect, ProtocolAdapter } from './dialect.ts'
import { generateContentCount } from './generate-content/count.ts'
import { generateContentDialect, generateContentNative } from './generate-content/dialect.ts'
import { messagesDialect, messagesNative } from './messages/dialect.ts'
import { responsesDialect, responsesNative } from './responses/dialect.ts'
import { chatCompletionsToGenerateContent } from './translate/to-generate-content/translation.ts'
import { chatCompletionsToMessages } from './translate/to-messages/translation.ts'

type TranslationOf<From extends ChatProtocol> = Extract<
  (typeof TRANSLATIONS)[number],
  readonly [From, ChatProtocol]
>[1]
/** By client protocol: the adapter to an upstream of the same protocol, and one for each translation. */
const ADAPTERS: {
  readonly [From in ChatProtocol]: Readonly<Record<From | TranslationOf<From>, ProtocolAdapter>>
} = {
  'chat-completions': {
    'chat-completions': chatCompletionsNative,
    messages: chatCompletionsToMessages(),
    'generate-content': chatCompletionsToGenerateContent(),
  },
  messages: { messages: messagesNative },
  'generate-content': { 'generate-content': generateContentNative },
  responses: { responses: responsesNative },
}

export const DIALECTS = {
  'chat-completions': chatCompletions,
  messages: messagesDialect,
  'generate-content': generateContentDialect,
  responses: responsesDialect,
} as const satisfies Record<ChatProtocol, Dialect>

/** All that reads requests. */
export const READERS = {
  ...DIALECTS,
  'generate-content-count': generateContentCount,
} as const satisfies Record<string, Dialect>
export type ReaderName = keyof typeof READERS

/** Returns the adapter between two protocols. Throws where there is none: routes name existing adapters only. */
export function protocolAdapter(client: ChatProtocol, upstream: ChannelProtocol): ProtocolAdapter {
  const byUpstream: Readonly<Partial<Record<ChannelProtocol, ProtocolAdapter>>> = ADAPTERS[client]
  const adapter = byUpstream[upstream]
  if (adapter === undefined) throw new Error(`There is no protocol adapter from ${client} to ${upstream}`)
  return adapter
}
