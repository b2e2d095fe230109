/**
 * Adapts a chat-completions call to an upstream of the messages protocol, and of its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { Part } from '../../../../schemas/chat/part.ts'
import { answerFields, SaidParts } from '../../answer/content.ts'
import { meteredWhole, modelIn } from '../../answer/reported-usage.ts'
import { ChatCompletionCollector } from '../../chat-completions/collector.ts'
import { asksForFunctionCall } from '../../chat-completions/legacy-functions.ts'
import { ChatCompletionsPrinter } from '../../chat-completions/printer.ts'
import type { ChatCall, ProtocolAdapter, WholeAnswer } from '../../dialect.ts'
import { MessagesReader } from '../../messages/reader.ts'
import { TranslatedStream } from '../stream.ts'
import { translateRequest } from './request.ts'

/** The parts of `ChatCall.source` that a translation needs. */
export interface TranslatableSource {
  /** The client's body, byte for byte. */
  readonly body: Buffer
  readonly request: { readonly stream_options?: { readonly include_usage?: boolean | null } | null }
}

const sourceOf = (call: ChatCall): TranslatableSource => call.source as TranslatableSource

/** Returns the translation. `now` returns epoch milliseconds. */
export function chatCompletionsToMessages(now: () => number = Date.now): ProtocolAdapter {
  const headOf = (call: ChatCall) => ({
    model: call.model,
    created: Math.floor(now() / 1000),
    isLegacy: asksForFunctionCall(sourceOf(call).body),
  })
  return {
    from: 'chat-completions',
    to: 'messages',
    streamContentType: 'text/event-stream; charset=utf-8',
    // Upstreams of this protocol fetch pictures themselves.
    urlsToFetch: () => [],
    encodeRequest: (call, { upstreamModel, outputCeiling }) =>
      translateRequest(sourceOf(call).body, {
        model: upstreamModel,
        stream: call.stream,
        outputLimit: call.outputLimit,
        outputCeiling,
      }),
    openStream(call) {
      const includeUsage = sourceOf(call).request.stream_options?.include_usage === true
      return new TranslatedStream(
        new MessagesReader(),
        new ChatCompletionsPrinter({ ...headOf(call), includeUsage }),
      )
    },
    readWhole: (call, body) => readWhole(body, new ChatCompletionCollector(headOf(call))),
  }
}

function readWhole(body: Buffer, collector: ChatCompletionCollector): WholeAnswer {
  const reader = new MessagesReader()
  const said = new SaidParts()
  const take = (part: Part): void => {
    said.add(part)
    collector.add(part)
  }
  const message = answerFields(body)
  const isRead = message !== null && reader.readWhole(message, take)
  const { report, usage, serviceTier } = reader
  const metered = {
    ...meteredWhole(report, said.characters, { usage, serviceTier }),
    ...modelIn(message?.model),
  }
  const isAnswer = isRead && (said.hasContent || (report?.output ?? null) !== null)
  return { body: isAnswer ? collector.body() : body, metered, isAnswer }
}
