/** The chat-completions dialect, and its passage to upstreams of the same protocol: bytes go through unchanged. */

import type { Dialect, Passage } from '../dialect.ts'
import { type ChatCompletionsCall, readChatCall, wireBody } from './dialect.ts'
import { ChatCompletionsMeter } from './meter.ts'
import { WholeResponse } from './whole.ts'

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
