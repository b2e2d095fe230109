/** The chat-completions dialect, and its passage to upstreams of the same protocol: bytes go through unchanged. */
import { type ChatCompletionsCall, readChatCall, wireBody } from './chat-completions.ts'
import { ChatCompletionsMeter } from './chat-completions-meter.ts'
import { WholeResponse } from './chat-completions-whole.ts'
import type { Dialect, Passage } from './dialect.ts'

export const chatCompletions: Dialect = {
  protocol: 'chat-completions',
  read: ({ body }) => readChatCall(body),
}

export const chatCompletionsNative: Passage = {
  from: 'chat-completions',
  to: 'chat-completions',
  streamContentType: null,
  urlsToFetch: () => [],
  wire: (call, options) => ({ body: wireBody(call as ChatCompletionsCall, options), dropped: [] }),
  openStream: (call) =>
    new ChatCompletionsMeter({ withholdUsage: !(call as ChatCompletionsCall).wantsUsage }),
  readWhole: (_call, body) => {
    const metered = new WholeResponse(body)
    return { body, metered, isAnswer: metered.isAnswer }
  },
}
