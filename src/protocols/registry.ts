/** Every client protocol, and every adapter from one to an upstream. To add one, see docs/extending.md, "A client protocol". */
import type { Conversation } from '../../schemas/chat/conversation.ts'
import {
  type CallProtocol,
  CHAT_PROTOCOLS,
  type ChannelProtocol,
  type ChatProtocol,
  type PassedEndpoint,
} from '../../schemas/config/catalog.ts'
import { chatCompletions, chatCompletionsNative } from './chat-completions/dialect.ts'
import { asTextCompletions } from './chat-completions/text-completions.ts'
import { completionsClient, completionsUpstream } from './chat-completions/translation/sides.ts'
import type { ChatCall, Dialect, ProtocolAdapter } from './dialect.ts'
import { generateContentCount } from './generate-content/count.ts'
import {
  generateContentDialect,
  generateContentNative,
  generateContentStream,
} from './generate-content/dialect.ts'
import { generateContentClient, generateContentUpstream } from './generate-content/translation/sides.ts'
import { messagesCount, messagesDialect, messagesNative } from './messages/dialect.ts'
import { messagesClient, messagesUpstream } from './messages/translation/sides.ts'
import { embeddings, embeddingsAdapter } from './passed/embeddings.ts'
import { rerank, rerankAdapter } from './passed/rerank.ts'
import { transcriptionsAdapter } from './passed/transcriptions.ts'
import { responsesCompaction, responsesDialect, responsesNative } from './responses/dialect.ts'
import { responsesClient, responsesUpstream } from './responses/translation/sides.ts'
import { DroppedFields } from './translate/dropped-fields.ts'
import { type ClientSide, translation, type UpstreamSide } from './translate/translation.ts'

const NATIVE: Readonly<Record<ChatProtocol, ProtocolAdapter>> = {
  'chat-completions': chatCompletionsNative,
  messages: messagesNative,
  'generate-content': generateContentNative,
  responses: responsesNative,
}
export const CLIENT_SIDES: Readonly<Record<ChatProtocol, ClientSide>> = {
  'chat-completions': completionsClient,
  messages: messagesClient,
  'generate-content': generateContentClient,
  responses: responsesClient,
}
export const UPSTREAM_SIDES: Readonly<Record<ChatProtocol, UpstreamSide>> = {
  'chat-completions': completionsUpstream,
  messages: messagesUpstream,
  'generate-content': generateContentUpstream,
  responses: responsesUpstream,
}

/** Adapters of requests that pass to the same path of a channel. */
const PASSED: Readonly<Record<PassedEndpoint, ProtocolAdapter>> = {
  embeddings: embeddingsAdapter,
  rerank: rerankAdapter,
  audio_transcriptions: transcriptionsAdapter,
}

/** By client protocol and upstream protocol: bytes pass between equal ones, all others are translated. */
const ADAPTERS: Readonly<Record<string, Readonly<Partial<Record<ChannelProtocol, ProtocolAdapter>>>>> =
  Object.fromEntries([
    ...CHAT_PROTOCOLS.map((from) => {
      const adapter = (to: ChatProtocol): ProtocolAdapter =>
        from === to ? NATIVE[from] : translation([from, CLIENT_SIDES[from]], [to, UPSTREAM_SIDES[to]])
      return [from, Object.fromEntries(CHAT_PROTOCOLS.map((to) => [to, adapter(to)]))] as const
    }),
    ...Object.entries(PASSED).map(([endpoint, adapter]) => [endpoint, { [endpoint]: adapter }] as const),
  ])

export const DIALECTS = {
  'chat-completions': chatCompletions,
  messages: messagesDialect,
  'generate-content': generateContentDialect,
  responses: responsesDialect,
} as const satisfies Record<ChatProtocol, Dialect>

/** All that reads requests. */
export const READERS = {
  ...DIALECTS,
  'generate-content-stream': generateContentStream,
  'generate-content-count': generateContentCount,
  'messages-count': messagesCount,
  'responses-compaction': responsesCompaction,
  embeddings,
  rerank,
} as const satisfies Record<string, Dialect<CallProtocol>>
export type ReaderName = keyof typeof READERS

/** Returns the adapter between two protocols. Throws where there is none: routes name existing adapters only. */
export function protocolAdapter(client: CallProtocol, upstream: ChannelProtocol): ProtocolAdapter {
  const adapter = ADAPTERS[client]?.[upstream]
  if (adapter === undefined) throw new Error(`There is no protocol adapter from ${client} to ${upstream}`)
  return adapter
}

/** Returns the adapter of a call, which prints what its client gets. */
export function callAdapter(
  client: CallProtocol,
  call: ChatCall,
  upstream: ChannelProtocol,
): ProtocolAdapter {
  const adapter = protocolAdapter(client, upstream)
  return call.isTextCompletion === true ? asTextCompletions(adapter) : adapter
}

/** Reads a call as a conversation, independent of its protocol. @throws Failure `invalid_request` */
export const readConversation = (client: ChatProtocol, call: ChatCall): Conversation =>
  CLIENT_SIDES[client].read(call, new DroppedFields())
