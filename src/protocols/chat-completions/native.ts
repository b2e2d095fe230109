/** The chat-completions dialect and its adapter to upstreams of the same protocol: bytes pass unchanged. */

import type { Dialect, ProtocolAdapter } from '../dialect.ts'
import { AssembledCompletion } from './assembled.ts'
import { type ChatCompletionsCall, readChatCall, wireBody } from './dialect.ts'
import { ChatCompletionsMeter } from './meter.ts'
import { WholeResponse } from './whole.ts'
import { completionAsStream } from './whole-as-stream.ts'

export const chatCompletions: Dialect = {
  protocol: 'chat-completions',
  read: ({ body }) => readChatCall(body),
}

export const chatCompletionsNative: ProtocolAdapter = {
  from: 'chat-completions',
  to: 'chat-completions',
  streamContentType: null,
  urlsToFetch: () => [],
  encodeRequest: (call, options) => ({ body: wireBody(call as ChatCompletionsCall, options), dropped: [] }),
  openStream: (call, provider) => {
    const { wantsUsage, choices } = call as ChatCompletionsCall
    return new ChatCompletionsMeter({ withholdUsage: !wantsUsage, provider, choices })
  },
  readWhole: (_call, body, provider) => {
    const metered = new WholeResponse(body, provider)
    return { body, metered, isAnswer: metered.isAnswer }
  },
  wholeAsStream: (call, body) => completionAsStream(body, (call as ChatCompletionsCall).wantsUsage),
  assembleStream: () => new AssembledCompletion(),
}
