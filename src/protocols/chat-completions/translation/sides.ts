/** The chat-completions protocol in translations. */
import type { ChatCall } from '../../dialect.ts'
import { parseCheckedBody } from '../../request/client-json.ts'
import { CHAT_COMPLETIONS_NAMES } from '../../request/known-names.ts'
import { COMMENT } from '../../sse/comment.ts'
import type { ClientSide, PrintOptions, UpstreamSide } from '../../translate/translation.ts'
import { AssembledCompletion } from '../assembled.ts'
import { getSource } from '../dialect.ts'
import { completionAsStream } from '../whole.ts'
import { ChatCompletionCollector } from './collector.ts'
import { ChatCompletionsPrinter } from './printer.ts'
import { readCompletionConversation } from './read-conversation.ts'
import { CompletionReader } from './reader.ts'
import { writeCompletionRequest } from './write-request.ts'

const wantsUsage = (call: ChatCall): boolean =>
  call.wantsCost === true || getSource(call).request.stream_options?.include_usage === true

const makeHead = (call: ChatCall, { created, upstream }: PrintOptions) => ({
  model: call.model,
  upstream,
  created,
  isLegacy: getSource(call).isLegacy,
})

export const completionsClient: ClientSide = {
  streamContentType: () => 'text/event-stream; charset=utf-8',
  keepAlive: () => COMMENT,
  read: (call, dropped) =>
    readCompletionConversation(parseCheckedBody(getSource(call).body, CHAT_COMPLETIONS_NAMES), dropped),
  printer: (call, options) =>
    new ChatCompletionsPrinter({ ...makeHead(call, options), includeUsage: wantsUsage(call) }),
  collector: (call, options) => new ChatCompletionCollector(makeHead(call, options)),
  wholeAsStream: (call, body) => completionAsStream(body, wantsUsage(call)),
  assembleStream: () => new AssembledCompletion(),
}

export const completionsUpstream: UpstreamSide = {
  fetchesLinks: () => true,
  write: writeCompletionRequest,
  reader: (provider) => new CompletionReader(provider),
  readModel: ({ model }) => model,
  countsThoughts: false,
}
